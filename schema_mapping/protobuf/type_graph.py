"""The message types that a root reaches.

Presence, packing, UTF-8 checks and closed enums follow syntax or features.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FeatureSet

from schema_mapping.protobuf.column_options import ColumnOptions, column_options
from schema_mapping.protobuf.descriptors import SourceSchema, find_descriptor
from schema_mapping.protobuf.extensions import check_extendees, find_extensions
from schema_mapping.protobuf.field_kinds import Cardinality, EnumType, WellKnown, WireKind

UNION_ROOT: Final = "(one of)"
"""The root of a graph of several message types, which are its fields. No Protobuf type can have this name."""

UNPACKABLE = frozenset({WireKind.STRING, WireKind.BYTES, WireKind.MESSAGE, WireKind.GROUP})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldType:
    """A declared field. `message` is set also if it is cut; `extension` is a full name.

    `column` is the .proto's other name for the column. `native`, `decimal` and `nanos` (the nanoseconds have a column)
    are chosen, not declared (see `well_known`); a `native` field has no `message`.
    """

    number: int
    name: str
    kind: WireKind
    cardinality: Cardinality
    explicit_presence: bool
    packed: bool
    validate_utf8: bool
    required: bool
    oneof: int | None
    enum: EnumType | None
    message: str | None
    key: FieldType | None
    value: FieldType | None
    column: str | None = None
    extension: str | None = None
    native: WellKnown | None = None
    decimal: bool = False
    nanos: bool = False

    @property
    def column_name(self) -> str:
        return self.column or self.name

    @property
    def held_message(self) -> str | None:
        return self.message if self.value is None else self.value.message

    def facts(self) -> dict[str, Any]:
        """Chosen types count as options, not facts."""
        seldom = {"column": self.column, "extension": self.extension}
        return {
            **self.place(),
            "name": self.name,
            "explicit_presence": self.explicit_presence,
            "validate_utf8": self.validate_utf8,
            "required": self.required,
            "enum": None
            if self.enum is None
            else {"full_name": self.enum.full_name, "closed": self.enum.closed, "names": self.enum.names},
            "message": self.message,
            "key": None if self.key is None else self.key.facts(),
            "value": None if self.value is None else self.value.facts(),
            **{name: fact for name, fact in seldom.items() if fact is not None},
        }

    def place(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "kind": self.kind.name,
            "cardinality": self.cardinality.name,
            "packed": self.packed,
            "oneof": self.oneof,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageType:
    """Fields, with extensions, ascend by number.

    `excluded` fields have no columns, and no types in the graph. `empty`: neither fields nor room for extensions.
    """

    full_name: str
    fields: tuple[FieldType, ...]
    message_set: bool
    excluded: tuple[FieldType, ...] = ()
    empty: bool = False

    def facts(self) -> dict[str, Any]:
        """Of an excluded field only its `place`."""
        excluded = {"excluded": [field.place() for field in self.excluded]} if self.excluded else {}
        return {
            "full_name": self.full_name,
            "fields": [field.facts() for field in self.fields],
            "message_set": self.message_set,
            **excluded,
        }


@dataclass(frozen=True, kw_only=True)
class TypeGraph:
    root: str
    types: Mapping[str, MessageType]

    def fingerprint(self) -> str:
        """SHA-256, in hex, of the facts."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        text = json.dumps(
            [self.root, [self.types[name].facts() for name in sorted(self.types)]],
            sort_keys=True,
            separators=(",", ":"),
        )
        return hashlib.sha256(text.encode()).hexdigest()


def type_graph(descriptor: Descriptor, extensions: Sequence[str] = ()) -> TypeGraph:
    """Raises DescriptorError for a missing or foreign extension, and for a bad column option."""
    named = find_extensions(descriptor, extensions)
    types: dict[str, MessageType] = {}
    pending = [descriptor]
    while pending:
        current = pending.pop()
        if current.full_name not in types:
            fields = [*current.fields, *named.get(current.full_name, ())]
            options = {field.number: column_options(field) for field in fields}
            types[current.full_name] = _message_type(current, fields, options)
            pending.extend(filter(None, (_referenced(field) for field in fields if not options[field.number].exclude)))
    check_extendees(named, types, descriptor.full_name)
    return TypeGraph(root=descriptor.full_name, types=types)


@lru_cache(maxsize=64)
def source_graph(source: SourceSchema) -> TypeGraph:
    """Raises DescriptorError if the schema lacks its message, an extension or an import."""
    return type_graph(find_descriptor(source), source.extensions)


def _referenced(field: FieldDescriptor) -> Descriptor | None:
    entry = _map_entry(field)
    return entry.fields_by_name["value"].message_type if entry is not None else field.message_type


def _map_entry(field: FieldDescriptor) -> Descriptor | None:
    message = field.message_type
    return message if message is not None and message.GetOptions().map_entry else None


def _message_type(
    descriptor: Descriptor, declared: Iterable[FieldDescriptor], options: Mapping[int, ColumnOptions]
) -> MessageType:
    proto = DescriptorProto()
    descriptor.CopyToProto(proto)
    oneofs = {
        field.number: field.oneof_index
        for field in proto.field
        if field.HasField("oneof_index") and not field.proto3_optional
    }
    fields = [
        replace(
            _field_type(field, oneofs.get(field.number)),
            column=options[field.number].name,
            extension=field.full_name if field.is_extension else None,
        )
        for field in sorted(declared, key=lambda field: field.number)
    ]
    return MessageType(
        full_name=descriptor.full_name,
        fields=tuple(field for field in fields if not options[field.number].exclude),
        message_set=bool(descriptor.GetOptions().message_set_wire_format),
        excluded=tuple(field for field in fields if options[field.number].exclude),
        empty=not proto.field and not proto.extension_range,
    )


def _field_type(field: FieldDescriptor, oneof: int | None) -> FieldType:
    entry = _map_entry(field)
    if entry is not None:
        return replace(
            _facts(field, cardinality=Cardinality.MAP),
            kind=WireKind.MESSAGE,
            key=_entry_field(entry.fields_by_name["key"]),
            value=_entry_field(entry.fields_by_name["value"]),
        )
    cardinality = Cardinality.REPEATED if field.is_repeated else Cardinality.SINGULAR
    return _facts(field, cardinality=cardinality, presence=field.has_presence, oneof=oneof, message=field.message_type)


def _entry_field(field: FieldDescriptor) -> FieldType:
    return _facts(field, message=field.message_type)


def _facts(
    field: FieldDescriptor,
    *,
    cardinality: Cardinality = Cardinality.SINGULAR,
    presence: bool = False,
    oneof: int | None = None,
    message: Descriptor | None = None,
) -> FieldType:
    kind = WireKind(field.type)
    return FieldType(
        number=field.number,
        name=field.name,
        kind=kind,
        cardinality=cardinality,
        explicit_presence=presence,
        packed=cardinality is Cardinality.REPEATED and kind not in UNPACKABLE and field.is_packed,
        validate_utf8=kind is WireKind.STRING and _validates_utf8(field),
        required=field.is_required,
        oneof=oneof,
        enum=_enum_type(field.enum_type) if field.enum_type is not None else None,
        message=message.full_name if message is not None else None,
        key=None,
        value=None,
    )


def _validates_utf8(field: FieldDescriptor) -> bool:
    # protobuf has no public accessor for the resolved features; the alternative is to resolve editions by hand.
    features: FeatureSet = field._GetFeatures()  # type: ignore[attr-defined]  # noqa: SLF001
    return features.utf8_validation == FeatureSet.Utf8Validation.VERIFY


def _enum_type(enum: EnumDescriptor) -> EnumType:
    names: dict[int, str] = {}
    for value in enum.values:
        names.setdefault(value.number, value.name)
    return EnumType(full_name=enum.full_name, closed=enum.is_closed, names=tuple(sorted(names.items())))
