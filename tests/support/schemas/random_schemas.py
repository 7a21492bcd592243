"""Random Protobuf schemas: proto2, proto3 and editions."""

from __future__ import annotations

from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import (
    EDITION_2023,
    DescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

from tests.support.schemas.random_choices import Choices, chance, pick

F = FieldDescriptorProto
SCALARS = (
    F.TYPE_INT32,
    F.TYPE_STRING,
    F.TYPE_ENUM,
    F.TYPE_MESSAGE,
    F.TYPE_INT64,
    F.TYPE_UINT32,
    F.TYPE_UINT64,
    F.TYPE_SINT32,
    F.TYPE_SINT64,
    F.TYPE_BOOL,
    F.TYPE_DOUBLE,
    F.TYPE_FLOAT,
    F.TYPE_FIXED32,
    F.TYPE_FIXED64,
    F.TYPE_SFIXED32,
    F.TYPE_SFIXED64,
    F.TYPE_BYTES,
)
KEYS = tuple(kind for kind in SCALARS if kind not in (F.TYPE_ENUM, F.TYPE_MESSAGE, F.TYPE_DOUBLE, F.TYPE_FLOAT))
UNPACKABLE = (F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE, F.TYPE_GROUP)
MESSAGES = ("M", "A", "B", "C")
WELL_KNOWN_FILES = (timestamp_pb2.DESCRIPTOR, duration_pb2.DESCRIPTOR, struct_pb2.DESCRIPTOR, wrappers_pb2.DESCRIPTOR)
WELL_KNOWN = (
    "Timestamp",
    "Struct",
    "Value",
    "ListValue",
    "Duration",
    *sorted(wrappers_pb2.DESCRIPTOR.message_types_by_name),
)
FAR_NUMBERS = (16, 100, 127, 128, 2047, 2048, 18_999, 20_000, (1 << 29) - 1)
SYNTAXES = ("proto3", "proto2", "editions")
ENUMS = {"E": (("E_ZERO", 0), ("E_ONE", 1), ("E_TWO", 2), ("E_FAR", 100_000), ("E_LESS", -1)), "G": (("G_ZERO", 0),)}


def random_schema(choices: Choices) -> Descriptor:
    syntax = pick(choices, SYNTAXES)
    file = FileDescriptorProto(name="t.proto", package="t", syntax=syntax)
    if syntax == "editions":
        file.edition = EDITION_2023
    for existing in WELL_KNOWN_FILES:
        file.dependency.append(existing.name)
    for name, values in ENUMS.items():
        enum = file.enum_type.add(name=name)
        for value_name, number in values:
            enum.value.add(name=value_name, number=number)
    enum = file.enum_type[0]
    enum.options.allow_alias = True
    enum.value.add(name="E_UNO", number=1)
    if syntax == "editions":
        file.enum_type[1].options.features.enum_type = FeatureSet.CLOSED
    for name in MESSAGES:
        message = file.message_type.add(name=name)
        if syntax == "proto2" and name == "C" and chance(choices, 30):
            message.options.message_set_wire_format = True
            message.extension_range.add(start=4, end=(1 << 31) - 1)
        else:
            _add_fields(choices, message, syntax)
    return pool_of(file).FindMessageTypeByName("t.M")


def pool_of(file: FileDescriptorProto) -> DescriptorPool:
    pool = DescriptorPool()
    for existing in WELL_KNOWN_FILES:
        pool.AddSerializedFile(existing.serialized_pb)
    pool.Add(file)
    return pool


def _add_fields(choices: Choices, message: DescriptorProto, syntax: str) -> None:
    last_oneof = -1
    for _ in range(choices.integer(0, 7)):
        number = pick(choices, FAR_NUMBERS) if chance(choices, 20) else choices.integer(1, 20)
        if all(number != field.number for field in message.field):
            last_oneof = _add_field(choices, message, number, last_oneof, syntax)
    for field in message.field:
        if field.proto3_optional:
            # Its synthetic oneof comes after all real ones.
            message.oneof_decl.add(name=f"_{field.name}")
            field.oneof_index = len(message.oneof_decl) - 1


def _add_field(choices: Choices, message: DescriptorProto, number: int, last_oneof: int, syntax: str) -> int:
    name = f"f{number}"
    shape = choices.integer(0, 9)
    if shape >= 8:
        _add_map(choices, message, name, number)
        return last_oneof
    kind = _kind(choices, syntax)
    field = message.field.add(name=name, number=number, label=F.LABEL_OPTIONAL, type=kind)
    _name_type(choices, field)
    if shape >= 5:
        field.label = F.LABEL_REPEATED
        if syntax != "editions" and kind not in UNPACKABLE and chance(choices, 50):
            field.options.packed = chance(choices, 50)
    elif shape == 4:
        if last_oneof < 0 or chance(choices, 30):
            message.oneof_decl.add(name=f"o{number}")
            last_oneof = len(message.oneof_decl) - 1
        field.oneof_index = last_oneof
    elif shape == 3 and syntax == "proto2":
        field.label = F.LABEL_REQUIRED
    elif shape == 3 and syntax == "proto3":
        field.proto3_optional = True
    if syntax == "editions":
        _add_features(choices, field, in_oneof=field.HasField("oneof_index"))
    return last_oneof


def _add_features(choices: Choices, field: FieldDescriptorProto, *, in_oneof: bool) -> None:
    features = field.options.features
    if field.label == F.LABEL_REPEATED:
        if field.type not in UNPACKABLE and chance(choices, 50):
            features.repeated_field_encoding = FeatureSet.EXPANDED
    elif not in_oneof and field.type != F.TYPE_MESSAGE and field.type_name != ".t.G" and chance(choices, 50):
        features.field_presence = FeatureSet.IMPLICIT
    if field.type == F.TYPE_MESSAGE and chance(choices, 40):
        features.message_encoding = FeatureSet.DELIMITED
    if field.type == F.TYPE_STRING and chance(choices, 40):
        features.utf8_validation = FeatureSet.NONE


def _kind(choices: Choices, syntax: str) -> int:
    return F.TYPE_GROUP if syntax == "proto2" and chance(choices, 10) else pick(choices, SCALARS)


def _name_type(choices: Choices, field: FieldDescriptorProto) -> None:
    if field.type in (F.TYPE_MESSAGE, F.TYPE_GROUP):
        existing = field.type == F.TYPE_MESSAGE and chance(choices, 30)
        field.type_name = (
            f".google.protobuf.{pick(choices, WELL_KNOWN)}" if existing else f".t.{pick(choices, MESSAGES)}"
        )
    elif field.type == F.TYPE_ENUM:
        field.type_name = f".t.{pick(choices, tuple(ENUMS))}"


def _add_map(choices: Choices, message: DescriptorProto, name: str, number: int) -> None:
    entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
    entry.options.map_entry = True
    key_kind = pick(choices, KEYS[:-1])
    entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=key_kind)
    value = entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL, type=pick(choices, SCALARS))
    _name_type(choices, value)
    message.field.add(
        name=name,
        number=number,
        label=F.LABEL_REPEATED,
        type=F.TYPE_MESSAGE,
        type_name=f".t.{message.name}.{entry.name}",
    )
