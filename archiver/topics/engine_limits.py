"""Limits of warehouses and catalogs on a table's columns. A message's columns are in one struct, so they count.

Sources: https://docs.snowflake.com/en/user-guide/tables-iceberg-data-types (1,000 sub-columns of a structured
type), https://cloud.google.com/bigquery/docs/nested-repeated (15 levels of nested records), and Glue's answer
to larger types: "Member must have length less than or equal to 131072".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, FixedType, IcebergType, ListType, MapType, NestedField, StructType

from schema_mapping import names

SNOWFLAKE_COLUMNS: Final = 1_000
BIGQUERY_LEVELS: Final = 15
GLUE_TYPE_LENGTH: Final = 131_072
_CUT: Final = f"struct<{names.UNRECOGNIZED}:binary>"
"""The type of a message that is cut."""
_HIVE_NAMES: Final = {"long": "bigint", "timestamptz": "timestamp", "time": "string", "uuid": "string"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceededLimit:
    engine: str
    column: str
    number: int
    limit: int
    unit: str
    setting: str
    remark: str = ""

    @property
    def text(self) -> str:
        return (
            f"{self.engine} takes at most {self.limit:,} {self.unit}, and `{self.column}` has {self.number:,}. If"
            f" {self.engine} must read the table, set {self.setting} before the first record is archived: columns stay"
            f" in a table that has them{self.remark}"
        )


def exceeded_limits(schema: Schema) -> tuple[ExceededLimit, ...]:
    return tuple(limit for field in schema.fields for limit in _of_column(field))


def _of_column(field: NestedField) -> Iterator[ExceededLimit]:
    kind, name = field.field_type, field.name
    if not isinstance(kind, StructType):
        return
    leaves, levels, length = leaf_columns(kind), struct_levels(kind), len(hive_type(kind))
    if leaves > SNOWFLAKE_COLUMNS:
        yield ExceededLimit(
            engine="Snowflake",
            column=name,
            number=leaves,
            limit=SNOWFLAKE_COLUMNS,
            unit="sub-columns of a structured column",
            **_column_settings(kind, SNOWFLAKE_COLUMNS),
        )
    if levels > BIGQUERY_LEVELS:
        yield ExceededLimit(
            engine="BigQuery",
            column=name,
            number=levels,
            limit=BIGQUERY_LEVELS,
            unit="levels of nested records",
            setting=f"max_depth = {_fitting_depth(kind, BIGQUERY_LEVELS)}",
        )
    if length > GLUE_TYPE_LENGTH:
        yield ExceededLimit(
            engine="AWS Glue",
            column=name,
            number=length,
            limit=GLUE_TYPE_LENGTH,
            unit="characters of a column's type",
            **_column_settings(kind, _fitting_columns(kind, GLUE_TYPE_LENGTH)),
        )


def _column_settings(kind: StructType, most: int) -> dict[str, str]:
    """`max_columns` cuts only nested messages."""
    own = _own_leaves(kind)
    if own <= most:
        return {"setting": f"max_columns = {most}"}
    return {
        "setting": "(archiver.column).exclude on fields in the .proto (for JSON: a schema with fewer members)",
        "remark": f". `max_columns` leaves out only messages inside the message, which has {own:,} columns without"
        " them; Avro has no setting for them",
    }


def _fitting_depth(kind: StructType, most: int) -> int:
    """Maps are levels that `max_depth` doesn't count."""
    depth = most - 1
    while depth > 1 and struct_levels(kind, depth) > most:
        depth -= 1
    return depth


def _fitting_columns(kind: StructType, length: int) -> int:
    columns, left = _own_leaves(kind), length - _own_length(kind)
    inner = [(_own_length(struct) - len(_CUT), _own_leaves(struct) - 1) for struct in _structs_below(kind)]
    for size, leaves in sorted(inner, key=lambda pair: pair[0] / max(1, pair[1]), reverse=True):
        if size > left:
            return columns + max(0, left * leaves // size)
        left, columns = left - size, columns + leaves
    return max(1, columns if left >= 0 else columns - 1)


def _own_leaves(kind: StructType) -> int:
    return leaf_columns(kind) - sum(leaf_columns(struct) - 1 for struct in _below(kind))


def _own_length(kind: StructType) -> int:
    return len(hive_type(kind)) - sum(len(hive_type(struct)) - len(_CUT) for struct in _below(kind))


def _structs_below(kind: StructType) -> Iterator[StructType]:
    for struct in _below(kind):
        yield struct
        yield from _structs_below(struct)


def _below(kind: IcebergType) -> Iterator[StructType]:
    match kind:
        case StructType():
            inner: tuple[IcebergType, ...] = tuple(field.field_type for field in kind.fields)
        case ListType():
            inner = (kind.element_type,)
        case MapType():
            inner = (kind.key_type, kind.value_type)
        case _:
            inner = ()
    for inside in inner:
        if isinstance(inside, StructType):
            yield inside
        else:
            yield from _below(inside)


def leaf_columns(kind: IcebergType) -> int:
    match kind:
        case StructType():
            return sum(leaf_columns(field.field_type) for field in kind.fields)
        case ListType():
            return leaf_columns(kind.element_type)
        case MapType():
            return leaf_columns(kind.key_type) + leaf_columns(kind.value_type)
        case _:
            return 1


def struct_levels(kind: IcebergType, max_depth: int | None = None) -> int:
    """A map is a level: BigQuery has a record for its entries.

    Structs deeper than `max_depth` are one column.
    """
    match kind:
        case StructType() if max_depth == 0:
            return 1
        case StructType():
            left = None if max_depth is None else max_depth - 1
            return 1 + max((struct_levels(field.field_type, left) for field in kind.fields), default=0)
        case ListType():
            return struct_levels(kind.element_type, max_depth)
        case MapType():
            return 1 + max(struct_levels(kind.key_type, max_depth), struct_levels(kind.value_type, max_depth))
        case _:
            return 0


def hive_type(kind: IcebergType) -> str:
    match kind:
        case StructType():
            return f"struct<{','.join(f'{field.name}:{hive_type(field.field_type)}' for field in kind.fields)}>"
        case ListType():
            return f"array<{hive_type(kind.element_type)}>"
        case MapType():
            return f"map<{hive_type(kind.key_type)},{hive_type(kind.value_type)}>"
        case DecimalType():
            return f"decimal({kind.precision},{kind.scale})"
        case FixedType():
            return "binary"
        case _:
            return _HIVE_NAMES.get(str(kind), str(kind))
