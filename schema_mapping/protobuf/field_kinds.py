"""Kinds of fields."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Cardinality(Enum):
    SINGULAR = "singular"
    REPEATED = "repeated"
    MAP = "map"


class WireKind(Enum):
    """Numbers of `FieldDescriptorProto.Type`. Delimited messages of editions are `GROUP`."""

    DOUBLE = 1
    FLOAT = 2
    INT64 = 3
    UINT64 = 4
    INT32 = 5
    FIXED64 = 6
    FIXED32 = 7
    BOOL = 8
    STRING = 9
    GROUP = 10
    MESSAGE = 11
    BYTES = 12
    UINT32 = 13
    ENUM = 14
    SFIXED32 = 15
    SFIXED64 = 16
    SINT32 = 17
    SINT64 = 18


class WellKnown(Enum):
    """Well-known types with one scalar column, by full name."""

    TIMESTAMP = "google.protobuf.Timestamp"
    DURATION = "google.protobuf.Duration"
    DOUBLE_VALUE = "google.protobuf.DoubleValue"
    FLOAT_VALUE = "google.protobuf.FloatValue"
    INT64_VALUE = "google.protobuf.Int64Value"
    UINT64_VALUE = "google.protobuf.UInt64Value"
    INT32_VALUE = "google.protobuf.Int32Value"
    UINT32_VALUE = "google.protobuf.UInt32Value"
    BOOL_VALUE = "google.protobuf.BoolValue"
    STRING_VALUE = "google.protobuf.StringValue"
    BYTES_VALUE = "google.protobuf.BytesValue"
    STRUCT = "google.protobuf.Struct"
    VALUE = "google.protobuf.Value"
    LIST_VALUE = "google.protobuf.ListValue"

    @property
    def is_json(self) -> bool:
        return self in (WellKnown.STRUCT, WellKnown.VALUE, WellKnown.LIST_VALUE)

    @property
    def wrapped(self) -> WireKind | None:
        return WRAPPED.get(self)


WRAPPED: Final = {
    WellKnown.DOUBLE_VALUE: WireKind.DOUBLE,
    WellKnown.FLOAT_VALUE: WireKind.FLOAT,
    WellKnown.INT64_VALUE: WireKind.INT64,
    WellKnown.UINT64_VALUE: WireKind.UINT64,
    WellKnown.INT32_VALUE: WireKind.INT32,
    WellKnown.UINT32_VALUE: WireKind.UINT32,
    WellKnown.BOOL_VALUE: WireKind.BOOL,
    WellKnown.STRING_VALUE: WireKind.STRING,
    WellKnown.BYTES_VALUE: WireKind.BYTES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumType:
    full_name: str
    closed: bool
    names: tuple[tuple[int, str], ...]
