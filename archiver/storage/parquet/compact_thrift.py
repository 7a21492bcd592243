"""Thrift's compact protocol: `thrift_reader` reads, `packed` writes.

Fields are keyed by id and kind: readers skip unexpected kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

BOOL, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
"""Kinds of values."""
_FALSE: Final = 2
_INTEGERS: Final = (I16, I32, I64)
_FIXED: Final = (I8, DOUBLE, UUID)
"""Kinds whose values are bytes of a fixed size."""
_LONG: Final = 15
"""Lists of this many values or more have their size after their kind."""
_LOW_BITS: Final = 0x7F
_MORE: Final = 0x80

Field: TypeAlias = tuple[int, int]
"""The id of a field, and its kind."""
Fields: TypeAlias = dict[Field, Any]
"""A struct. Values are numbers, booleans, memoryviews, structs, and pairs of a list's kind and values."""


class ThriftError(Exception): ...


def number(fields: Fields, field: Field) -> int:
    """Raise ThriftError if the field is missing."""
    value = fields.get(field)
    if type(value) is not int:
        raise ThriftError
    return value


def struct(fields: Fields, field: Field) -> Fields:
    """Raise ThriftError if the field is missing."""
    value: Fields | None = fields.get(field)
    if value is None:
        raise ThriftError
    return value


def listed(fields: Fields, field: Field, kind: int) -> Sequence[Any]:
    """Empty if missing. Raises ThriftError for another kind."""
    typed_list: tuple[int, Sequence[Any]] | None = fields.get(field)
    if typed_list is None:
        return []
    of_kind, values = typed_list
    if values and of_kind != kind:
        raise ThriftError
    return values


def packed(fields: Fields) -> bytes:
    out = bytearray()
    _pack_struct(out, fields)
    return bytes(out)


def _pack_struct(out: bytearray, fields: Fields | bytes) -> None:
    if isinstance(fields, bytes):
        out += fields
        return
    last = 0
    for (identifier, kind), value in sorted(fields.items(), key=itemgetter(0)):
        shown = _FALSE if kind == BOOL and not value else kind
        if identifier - last <= _LONG:
            out.append(identifier - last << 4 | shown)
        else:
            out.append(shown)
            _pack_varint(out, identifier << 1)
        last = identifier
        if kind != BOOL:
            _pack_value(out, kind, value)
    out.append(0)


def _pack_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _pack_varint(out, value << 1 if value >= 0 else ~(value << 1))
    elif kind == BINARY:
        _pack_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _pack_struct(out, value)
    elif kind == LIST:
        of_kind, values = value
        out.append(min(len(values), _LONG) << 4 | of_kind)
        if len(values) >= _LONG:
            _pack_varint(out, len(values))
        for item in values:
            _pack_value(out, of_kind, item)
    elif kind == BOOL:
        out.append(BOOL if value else _FALSE)
    elif kind in _FIXED:
        out += value
    else:
        raise ThriftError


def _pack_varint(out: bytearray, value: int) -> None:
    while value > _LOW_BITS:
        out.append(value & _LOW_BITS | _MORE)
        value >>= 7
    out.append(value)
