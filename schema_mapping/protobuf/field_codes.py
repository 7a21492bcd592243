"""Codes of field types for the kernel."""

from __future__ import annotations

from schema_mapping.protobuf.field_kinds import Cardinality, EnumType, WireKind
from schema_mapping.protobuf.kernel.tables import OPS
from schema_mapping.protobuf.mapped_messages import MappedField, UnmappedField

VARINT, FIXED64, DELIMITED, START_GROUP, FIXED32 = 0, 1, 2, 3, 5
TAG_BITS = 7

PLAIN_OPS = {
    WireKind.DOUBLE: OPS["DOUBLE"],
    WireKind.FLOAT: OPS["FLOAT"],
    WireKind.INT64: OPS["INT64"],
    WireKind.UINT64: OPS["INT64"],
    WireKind.INT32: OPS["INT32"],
    WireKind.FIXED64: OPS["FIXED64"],
    WireKind.FIXED32: OPS["FIXED32"],
    WireKind.BOOL: OPS["BOOL"],
    WireKind.GROUP: OPS["GROUP"],
    WireKind.MESSAGE: OPS["MESSAGE"],
    WireKind.BYTES: OPS["BYTES"],
    WireKind.UINT32: OPS["UINT32"],
    WireKind.SFIXED32: OPS["FIXED32"],
    WireKind.SFIXED64: OPS["FIXED64"],
    WireKind.SINT32: OPS["SINT32"],
    WireKind.SINT64: OPS["SINT64"],
}

WIRE_TYPES = {
    WireKind.DOUBLE: FIXED64,
    WireKind.FIXED64: FIXED64,
    WireKind.SFIXED64: FIXED64,
    WireKind.FLOAT: FIXED32,
    WireKind.FIXED32: FIXED32,
    WireKind.SFIXED32: FIXED32,
    WireKind.STRING: DELIMITED,
    WireKind.BYTES: DELIMITED,
    WireKind.MESSAGE: DELIMITED,
    WireKind.GROUP: START_GROUP,
}

LEAF_OUTPUTS = {
    OPS["INT64"]: "64",
    OPS["INT32"]: "32",
    OPS["UINT32"]: "32",
    OPS["SINT32"]: "32",
    OPS["SINT64"]: "64",
    OPS["BOOL"]: "BOOL",
    OPS["OPEN_ENUM"]: "BYTES",
    OPS["CLOSED_ENUM"]: "BYTES",
    OPS["FIXED64"]: "64",
    OPS["DOUBLE"]: "64",
    OPS["FIXED32"]: "32",
    OPS["FLOAT"]: "32",
    OPS["STRING"]: "BYTES",
    OPS["TEXT"]: "BYTES",
    OPS["BYTES"]: "BYTES",
}


def op_code(kind: WireKind, *, is_map: bool, validate_utf8: bool, enum: EnumType | None) -> int:
    if is_map:
        return OPS["MAP"]
    if kind is WireKind.STRING:
        return OPS["STRING" if validate_utf8 else "TEXT"]
    if enum is not None:
        return OPS["CLOSED_ENUM" if enum.closed else "OPEN_ENUM"]
    return PLAIN_OPS[kind]


def canonical_tag(field: MappedField | UnmappedField) -> int:
    if field.cardinality is Cardinality.MAP or field.packed:
        return field.number << 3 | DELIMITED
    return field.number << 3 | WIRE_TYPES.get(field.kind, VARINT)


def tag_size(tag: int) -> int:
    return max(1, -(-tag.bit_length() // TAG_BITS))
