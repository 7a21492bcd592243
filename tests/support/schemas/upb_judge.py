"""Google's upb as the judge of decoded rows."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from functools import lru_cache
from typing import Any

from google.protobuf import empty_pb2, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from schema_mapping.protobuf.field_kinds import Cardinality, WellKnown, WireKind
from schema_mapping.protobuf.mapped_messages import MappedField, MappedMessage
from tests.support.schemas.judged_well_known import json_cell, judged

FLOATS = (WireKind.DOUBLE, WireKind.FLOAT)
WRAPPED = {WireKind.UINT32: 32, WireKind.FIXED32: 32, WireKind.UINT64: 64, WireKind.FIXED64: 64}
UNRECOGNIZED = "__unrecognized__"


class Unreadable:
    """Python can't read maps with keys that aren't UTF-8."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@lru_cache(maxsize=64)
def message_class(descriptor: Descriptor) -> type[Message]:
    return message_factory.GetMessageClass(descriptor)


def parse(descriptor: Descriptor, data: bytes) -> Message | None:
    try:
        return message_class(descriptor).FromString(data)
    except DecodeError:
        return None


def columns_of(message: Message, mapped: MappedMessage) -> dict[str, Any]:
    result = {field.name: _field(message, field) for field in mapped.fields}
    result |= {field.nanos.name: _nanos(message, field) for field in mapped.fields if field.nanos is not None}
    # upb writes the items of a message set anew, without what it doesn't know in them.
    result[UNRECOGNIZED] = [] if mapped.message_set else _unknown(UnknownFieldSet(message), _map_numbers(mapped))
    return result


def columns_in(row: dict[str, Any], mapped: MappedMessage, message: Message) -> dict[str, Any]:
    """`message` has the types of cut columns."""
    result = {field.name: _column(row[field.name], field, message) for field in mapped.fields}
    for field in mapped.fields:
        if field.nanos is not None:
            result[field.nanos.name] = _nanos_column(row[field.nanos.name], row[field.name], field)
    data = row[UNRECOGNIZED]
    fields = UnknownFieldSet(empty_pb2.Empty.FromString(data)) if data and not mapped.message_set else ()
    result[UNRECOGNIZED] = _unknown(fields, _map_numbers(mapped))
    return result


def field_descriptor(descriptor: Descriptor, number: int) -> FieldDescriptor:
    result = descriptor.fields_by_number.get(number)
    return descriptor.file.pool.FindExtensionByNumber(descriptor, number) if result is None else result


def _field(message: Message, field: MappedField) -> Any:
    descriptor = field_descriptor(message.DESCRIPTOR, field.number)
    is_extension = descriptor.is_extension
    if field.explicit_presence and field.cardinality is Cardinality.SINGULAR:
        present = message.HasExtension(descriptor) if is_extension else message.HasField(descriptor.name)
        if not present:
            return None
    value: Any = message.Extensions[descriptor] if is_extension else getattr(message, descriptor.name)
    match field.cardinality:
        case Cardinality.SINGULAR:
            return _value(value, field)
        case Cardinality.REPEATED:
            return [_value(item, field, has_nulls=False) for item in value]
        case Cardinality.MAP:
            assert field.key is not None
            assert field.value is not None
            try:
                return {_value(key, field.key): _value(item, field.value) for key, item in value.items()}
            except UnicodeDecodeError:
                return Unreadable()


def _nanos(message: Message, field: MappedField) -> Any:
    """Nanoseconds below a microsecond; of a map, by key."""
    times = _field(message, field)
    descriptor = field_descriptor(message.DESCRIPTOR, field.number)
    value: Any = message.Extensions[descriptor] if descriptor.is_extension else getattr(message, descriptor.name)
    match field.cardinality:
        case Cardinality.SINGULAR:
            return None if times is None else value.nanos % 1_000
        case Cardinality.REPEATED:
            return [None if _overflows(item) else item.nanos % 1_000 for item in value]
        case Cardinality.MAP:
            assert field.key is not None
            if isinstance(times, Unreadable):
                return times
            return {
                _value(key, field.key): None if _overflows(item) else item.nanos % 1_000 for key, item in value.items()
            }


def _overflows(time: Any) -> bool:
    return judged(time, WellKnown.TIMESTAMP, has_nulls=True) is None


def _nanos_column(value: Any, times: Any, field: MappedField) -> Any:
    if value is None or field.cardinality is Cardinality.SINGULAR:
        return value
    assert len(value) == len(times)
    # A time that doesn't fit has 0.
    if field.cardinality is Cardinality.REPEATED:
        return [nanos or _ANY_ZERO for nanos in value]
    assert field.key is not None
    return {_cell(key, field.key, None): nanos or _ANY_ZERO for (key, _), nanos in zip(times, value, strict=True)}


class _Zero:
    """Equals 0 and None, which stands for times out of range."""

    def __eq__(self, other: object) -> bool:
        return other in (0, None)

    __hash__ = None  # type: ignore[assignment]


_ANY_ZERO = _Zero()


def _value(value: Any, field: MappedField, *, has_nulls: bool = True) -> Any:
    if field.native is not None and field.native.wrapped is not None:
        return _scalar(value.value, field.native.wrapped, decimal=field.decimal)
    if field.native is not None:
        return judged(value, field.native, has_nulls=has_nulls)
    if isinstance(value, Message):
        if field.message is not None:
            return columns_of(value, field.message)
        return value.SerializePartialToString(deterministic=True)
    if field.enum is not None:
        return dict(field.enum.names).get(value, str(value))
    return _scalar(value, field.kind, decimal=field.decimal)


def _scalar(value: Any, kind: WireKind, *, decimal: bool) -> Any:
    if decimal:
        return Decimal(value)
    if kind in WRAPPED:
        bits = WRAPPED[kind]
        return value - (1 << bits) if value >> (bits - 1) else value
    if kind is WireKind.STRING and isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return _float(value) if kind in FLOATS else value


def _float(value: float) -> bytes | str:
    return "nan" if math.isnan(value) else struct.pack("<d", value)


def _column(value: Any, field: MappedField, message: Message) -> Any:
    descriptor: Any = field_descriptor(message.DESCRIPTOR, field.number)
    if value is None:
        return None
    match field.cardinality:
        case Cardinality.SINGULAR:
            return _cell(value, field, descriptor.message_type)
        case Cardinality.REPEATED:
            return [_cell(item, field, descriptor.message_type) for item in value]
        case Cardinality.MAP:
            assert field.key is not None
            assert field.value is not None
            target = descriptor.message_type.fields_by_name["value"].message_type
            pairs = [(_cell(key, field.key, None), _cell(item, field.value, target)) for key, item in value]
            assert len({key for key, _ in pairs}) == len(pairs), "a key stands twice in a map"
            return dict(pairs)


def _cell(value: Any, field: MappedField, descriptor: Any) -> Any:
    kind = field.native.wrapped if field.native is not None else field.kind
    if field.native is not None and field.native.is_json:
        return json_cell(value)
    if descriptor is None or field.native is not None:
        return _float(value) if kind in FLOATS and value is not None else value
    if field.message is not None:
        return columns_in(value, field.message, message_class(descriptor)())
    cut = parse(descriptor, value[UNRECOGNIZED] or b"")
    return None if cut is None else cut.SerializePartialToString(deterministic=True)


def _map_numbers(mapped: MappedMessage) -> frozenset[int]:
    return frozenset(field.number for field in mapped.fields if field.cardinality is Cardinality.MAP)


def _unknown(fields: Any, maps: frozenset[int]) -> list[Any]:
    # upb rewrites a map entry with unknown fields; here it stays as it was.
    return [
        (
            field.field_number,
            field.wire_type,
            _unknown(field.data, frozenset())
            if field.wire_type == 3
            else None
            if field.field_number in maps
            else field.data,
        )
        for field in fields
    ]
