"""Fields of columns by path, with Avro's types."""

from __future__ import annotations

from schema_mapping.avro.ledger_steps import Renamed, struct_in
from schema_mapping.avro.types import (
    NULL,
    ArrayOf,
    AvroType,
    DecimalBytes,
    DecimalDigits,
    EnumSymbols,
    FixedBytes,
    MapOfValues,
    PrimitiveType,
    UnionOf,
    type_name,
    without_null,
)
from schema_mapping.avro.writer_columns import StructField, WriterColumns
from schema_mapping.columns.paths import Path, is_field
from schema_mapping.value_format import DeclaredField


def declared_field(columns: WriterColumns, renamed: Renamed, path: Path) -> DeclaredField:
    """Raises KeyError if no column, list or map has the path."""
    struct: str | None = columns.root
    field: StructField | None = None
    for step in path:
        if is_field(step):
            if struct is None:
                raise KeyError(path)
            steps = renamed.get(struct, {})
            fields = columns.structs[struct]
            field = next(fields[name] for name in fields if steps.get(name, name) == step)
            struct, _ = struct_in(field.holds)
    if field is None:
        raise KeyError(path)
    return DeclaredField(name=field.name, type=type_text(field.type), is_enum=_is_enum(field.type))


def type_text(kind: AvroType) -> str:  # noqa: PLR0911 - a table of types
    """As in `array<string>`, `union<null, shop.Order>`, `timestamp-millis`."""
    match kind:
        case PrimitiveType(name, logical):
            return logical or name
        case DecimalBytes(digits):
            return _decimal(digits)
        case FixedBytes(name, size, digits=digits):
            return f"{name} fixed({size})" if digits is None else f"{name} {_decimal(digits)}"
        case ArrayOf(items):
            return f"array<{type_text(items)}>"
        case MapOfValues(values):
            return f"map<{type_text(values)}>"
        case UnionOf(branches):
            return f"union<{', '.join(map(type_text, branches))}>"
        case _:
            return type_name(kind)


def _decimal(digits: DecimalDigits) -> str:
    return f"decimal({digits.precision}, {digits.scale})"


def _is_enum(kind: AvroType) -> bool:
    match without_null(kind)[0]:
        case EnumSymbols():
            return True
        case ArrayOf(inner) | MapOfValues(inner):
            return inner != NULL and _is_enum(inner)
        case _:
            return False
