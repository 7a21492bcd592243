"""Which columns of a client's schema a topic's columns can take: by name, without loss."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

import pyarrow as pa
import pyarrow.types as kinds

from archiver.terminal.schema_words import describe
from schema_mapping import names
from schema_mapping.columns.arrow import field_id_of
from schema_mapping.columns.evolution import Change, ChangeKind

_LIKENESS: Final = 0.4
_UNSIGNED_AS: Final = 2
"""An unsigned number fits into a signed one of twice its width."""
_BINARY: Final = (kinds.is_binary, kinds.is_large_binary, kinds.is_binary_view, kinds.is_fixed_size_binary)
_IN_DICTIONARIES: Final = (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary)
_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}
_NAMES: Final = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
    pa.uuid(): "uuid",
}


def columns_of(struct: pa.StructType) -> list[pa.Field]:
    """The columns that a client may send: not the archiver's."""
    return [field for field in struct if field.name not in names.RESERVED]


def misfits(sent: pa.Schema | pa.StructType, mapped: pa.StructType, path: str) -> Iterator[str]:
    """Describe each column that doesn't fit, in the words of `archiver schema diff`. Missing columns are null."""
    columns = {field.name: field for field in columns_of(mapped)}
    seen: set[str] = set()
    for field in sent:
        column = columns.get(field.name)
        name = f"{path}.{field.name}"
        if field.name in seen:
            yield f"+ {name} is there twice"
        elif column is None:
            near = get_close_matches(field.name, columns, n=3, cutoff=_LIKENESS)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            yield f"+ {name} {_type_name(field.type)} is no column of the topic's schema{hint}"
        else:
            yield from _misfits(field.type, column.type, name, field_id_of(column))
        seen.add(field.name)


def _misfits(sent: pa.DataType, mapped: pa.DataType, path: str, field_id: int) -> Iterator[str]:
    if kinds.is_dictionary(sent) and any(is_kind(sent.value_type) for is_kind in _IN_DICTIONARIES):
        sent = sent.value_type
    if kinds.is_null(sent):
        return
    if kinds.is_struct(sent) and kinds.is_struct(mapped):
        yield from misfits(sent, mapped, path)
    elif is_listed(sent) and kinds.is_list(mapped):
        yield from _below(sent.value_type, mapped.value_field, path, names.ELEMENT_NAME)
    elif kinds.is_map(sent) and kinds.is_map(mapped):
        yield from _below(sent.key_type, mapped.key_field, path, names.MAP_KEY_NAME)
        yield from _below(sent.item_type, mapped.item_field, path, names.MAP_VALUE_NAME)
    elif not _fits(sent, mapped):
        change = Change(
            kind=ChangeKind.REPLACED,
            root="val",
            path=(),
            field_id=field_id,
            column=path,
            before=_type_name(mapped),
            after=_type_name(sent),
        )
        yield describe(change)


def _below(sent: pa.DataType, mapped: pa.Field, path: str, name: str) -> Iterator[str]:
    return _misfits(sent, mapped.type, f"{path}.{name}", field_id_of(mapped))


def is_listed(kind: pa.DataType) -> bool:
    """Without views of lists: Arrow loses elements when it casts them."""
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _fits(sent: pa.DataType, mapped: pa.DataType) -> bool:
    """Whether each value of a scalar type has an equal one in the column. Units of times are checked by value."""
    if kinds.is_integer(mapped):
        fits = kinds.is_integer(sent) and _bits(sent) <= mapped.bit_width
    elif kinds.is_floating(mapped):
        fits = kinds.is_floating(sent) and sent.bit_width <= mapped.bit_width
    elif kinds.is_string(mapped):
        fits = kinds.is_string(sent) or kinds.is_large_string(sent) or kinds.is_string_view(sent)
    elif kinds.is_binary(mapped):
        fits = any(is_kind(sent) for is_kind in _BINARY)
    elif mapped == pa.uuid():
        fits = sent in (pa.uuid(), pa.binary(16))
    elif kinds.is_timestamp(mapped):
        fits = kinds.is_timestamp(sent) and (sent.tz is None) == (mapped.tz is None)
    elif kinds.is_time(mapped):
        fits = kinds.is_time(sent)
    elif kinds.is_decimal128(mapped):
        fits = _fits_decimal(sent, mapped)
    else:
        fits = sent == mapped
    return bool(fits)


def _fits_decimal(sent: pa.DataType, mapped: pa.Decimal128Type) -> bool:
    if kinds.is_integer(sent):
        return bool(mapped.scale == 0 and _DIGITS[sent.bit_width] <= mapped.precision)
    return bool(kinds.is_decimal(sent) and sent.scale == mapped.scale and sent.precision <= mapped.precision)


def _bits(kind: pa.DataType) -> int:
    return int(kind.bit_width * (_UNSIGNED_AS if kinds.is_unsigned_integer(kind) else 1))


def _type_name(kind: pa.DataType) -> str:
    """The name in the words of the archiver's schemas, or Arrow's."""
    if kinds.is_struct(kind):
        return "struct"
    if kinds.is_map(kind):
        return "map"
    if is_listed(kind):
        return "list"
    if kinds.is_decimal128(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if kinds.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    return _NAMES.get(kind) or str(kind)[:200]
