"""The Spark SQL for an operator to create a topic's table."""

from __future__ import annotations

from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestamptzType,
)

from catalog.errors import UnnamedType

_NAMES: dict[type[IcebergType], str] = {
    BinaryType: "BINARY",
    BooleanType: "BOOLEAN",
    DateType: "DATE",
    DoubleType: "DOUBLE",
    FloatType: "FLOAT",
    IntegerType: "INT",
    LongType: "BIGINT",
    StringType: "STRING",
    TimestamptzType: "TIMESTAMP",
}


def create_statement(table: str, schema: Schema) -> str:
    """Without partitioning, order and properties, which the first run sets.

    Raises UnnamedType for a type without a name in Spark SQL.
    """
    columns = ",\n".join(f"  {_quoted(field.name)} {_type(field.field_type, field.name)}" for field in schema.fields)
    name = ".".join(_quoted(part) for part in table.split("."))
    return f"CREATE TABLE {name} (\n{columns}\n) USING iceberg TBLPROPERTIES ('format-version' = '2')"


def _type(kind: IcebergType, path: str) -> str:
    match kind:
        case StructType():
            fields = (
                f"{_quoted(field.name)}: {_type(field.field_type, f'{path}.{field.name}')}" for field in kind.fields
            )
            return f"STRUCT<{', '.join(fields)}>"
        case ListType():
            return f"ARRAY<{_type(kind.element_type, path)}>"
        case MapType():
            return f"MAP<{_type(kind.key_type, path)}, {_type(kind.value_type, path)}>"
        case DecimalType():
            return f"DECIMAL({kind.precision}, {kind.scale})"
        case _ if type(kind) in _NAMES:
            return _NAMES[type(kind)]
    raise UnnamedType(
        f"Spark SQL can't make a column of the type {kind}: let the archiver make the table, or give it the right to",
        column=path,
    )


def _quoted(name: str) -> str:
    plain = name.replace("_", "a").isalnum() and name.isascii() and not name[0].isdigit()
    return name if plain else "`" + name.replace("`", "``") + "`"
