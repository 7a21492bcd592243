"""The mapping tree: a Protobuf message as columns, with names and field ids.

Built by `tree`, compiled to flat tables by `program`. Fields stand in ascending number; in every struct the columns
are the fields, then at the root `__prefix__`, `__raw__`, `__err__`, `__form__`, then `__unrecognized__`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Cardinality(Enum):
    """How many values a field holds."""

    SINGULAR = "singular"
    REPEATED = "repeated"
    MAP = "map"


class WireKind(Enum):
    """A field's Protobuf type; the numbers are those of `FieldDescriptorProto.Type`.

    Delimited messages of editions are `GROUP`, whatever they are called in the source.
    """

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
    """A well-known message type that one scalar column can hold; the values are full names."""

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
        """Whether the column is JSON text."""
        return self in (WellKnown.STRUCT, WellKnown.VALUE, WellKnown.LIST_VALUE)

    @property
    def wrapped(self) -> WireKind | None:
        """What a wrapper wraps; None for the others."""
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
    """An enum: its full name, whether it is closed, and the first declared name of each number, ascending."""

    full_name: str
    closed: bool
    names: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedField:
    """One field of a message and the column that holds it.

    `name` is the column's name, `source_name` the field's. `oneof` is the index of a real oneof, never a synthetic one.
    A repeated field's list has `field_id`, its elements `element_id`. A map is described by `key` and `value`, whose
    `field_id`s are Iceberg's key and value ids and which have no presence of their own (absent means the default); its
    own `kind` is MESSAGE and says nothing. `unrecognized_id` is set on a cut message: its only child's id. `native` is
    the well-known type that one scalar column holds, `decimal` says that it is a decimal of unsigned 64-bit numbers.
    """

    number: int
    name: str
    source_name: str
    kind: WireKind
    cardinality: Cardinality
    explicit_presence: bool
    packed: bool
    validate_utf8: bool
    required: bool
    oneof: int | None
    enum: EnumType | None
    message: MappedMessage | None
    key: MappedField | None
    value: MappedField | None
    field_id: int
    element_id: int | None
    unrecognized_id: int | None
    native: WellKnown | None = None
    decimal: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether the field is a message kept whole, as bytes in its `__unrecognized__`."""
        return (
            self.message is None
            and self.native is None
            and self.kind in (WireKind.MESSAGE, WireKind.GROUP)
            and self.cardinality is not Cardinality.MAP
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedField:
    """A field without a column: as much of its type as tells how it begins on the wire, and where."""

    number: int
    kind: WireKind
    cardinality: Cardinality
    packed: bool
    oneof: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedMessage:
    """A message that has columns; `message_set` marks the old MessageSet wire format.

    `excluded` are its fields that have no column; their bytes are in `__unrecognized__`. `empty` says that the type
    has neither fields nor room for extensions.
    """

    full_name: str
    fields: tuple[MappedField, ...]
    unrecognized_id: int
    message_set: bool
    excluded: tuple[ExcludedField, ...] = ()
    empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RootIds:
    """Field ids of the columns that only the root struct of a key or value has."""

    raw: int
    prefix: int
    err: int
    form: int
