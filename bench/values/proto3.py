"""Makes proto3 message types from lines of text: `name:1:STRING`, `lines:5*:.shop.Line`."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

F = FieldDescriptorProto


def message_type(
    package: str, types: Mapping[str, str], enums: Mapping[str, tuple[str, ...]] | None = None
) -> Descriptor:
    """Make the last of `types`. Fields are scalars, `.pkg.Message`, `=.pkg.Enum`, or `{}`: a map of strings."""
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, values in (enums or {}).items():
        added = file.enum_type.add(name=name)
        for number, value in enumerate(values):
            added.value.add(name=value, number=number)
    for name, fields in types.items():
        message = file.message_type.add(name=name)
        for field in fields.split():
            _add_field(message, f".{package}.{name}", field)
    pool = DescriptorPool()
    pool.Add(file)
    return pool.FindMessageTypeByName(f"{package}.{file.message_type[-1].name}")


def _add_field(message: DescriptorProto, path: str, text: str) -> None:
    name, number, kind = text.split(":")
    label = F.LABEL_REPEATED if number.endswith("*") else F.LABEL_OPTIONAL
    added = message.field.add(name=name, number=int(number.rstrip("*")), label=label)
    if kind == "{}":
        entry = message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=F.TYPE_STRING)
        entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL, type=F.TYPE_STRING)
        added.label = F.LABEL_REPEATED
        kind = f"{path}.{entry.name}"
    if kind.startswith(("=", ".")):
        added.type_name = kind.lstrip("=")
        added.type = F.TYPE_ENUM if kind.startswith("=") else F.TYPE_MESSAGE
    else:
        added.type = F.Type.Value(f"TYPE_{kind}")
