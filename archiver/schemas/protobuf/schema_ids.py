"""Finds the message that the schema id or GUID and the message indexes of a record stand for.

These objects pickle, so that tasks can carry them. They ask the schema registry only about ids that they don't know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from archiver.schemas.protobuf.registered_schema import CompiledSchema, Indexes, messages_at
from archiver.schemas.registry.ids import RegistryIds
from catalog.model import SchemaIdentity, SchemaNumber


class SchemaIds(Protocol):
    """Knows what the schema ids, GUIDs and message indexes of records mean."""

    def messages(self, schema_id: SchemaNumber, indexes: Indexes) -> frozenset[str] | None:
        """The full names of the messages that they may mean. Empty if the schema has no such message.

        None if the schema registry has no such id. Raises the subclasses of SchemaRegistryError if the schema registry
        can't say what the id means; BadSchema is the one that never goes away.
        """

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        """The schemas, as `CompiledSchema.to_bytes` writes them, of those ids that had to be asked for."""

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> SchemaIds:
        """A copy that knows these schemas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownId:
    """A schema id with the names of its messages. `names` is the main file, with everything else removed."""

    id: SchemaNumber
    names: bytes

    @classmethod
    def of(cls, schema: CompiledSchema) -> KnownId:
        """The part of a schema that is needed to read envelopes."""
        bare = FileDescriptorProto(package=schema.main.package, message_type=map(_names_only, schema.main.message_type))
        return cls(id=schema.id, names=bare.SerializeToString(deterministic=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistryIds:
    """The ids of a topic's keys or values. `registry` looks up the ids that aren't in `known`."""

    registry: RegistryIds[CompiledSchema]
    known: tuple[KnownId, ...] = ()

    def messages(self, schema_id: SchemaNumber, indexes: Indexes) -> frozenset[str] | None:
        """The full names of the messages that they may mean."""
        main = _by_id(self.known).get(schema_id)
        if main is not None:
            return messages_at(main, indexes)
        schema = self.registry.schema(schema_id)
        return None if schema is None else schema.messages_at(indexes)

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        """The schemas of those ids that aren't in `known`."""
        return self.registry.to_keep(set(schema_ids) - _by_id(self.known).keys())

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> SchemaRegistryIds:
        """A copy that knows those of the schemas whose ids count in the same context."""
        more = {schema.id: KnownId.of(schema) for schema in self.registry.kept(schemas)}
        known = {schema.id: schema for schema in self.known} | more
        return replace(self, known=tuple(known[number] for number in sorted(known, key=str)))


@lru_cache(maxsize=64)
def _by_id(known: tuple[KnownId, ...]) -> dict[SchemaNumber, FileDescriptorProto]:
    return {each.id: FileDescriptorProto.FromString(each.names) for each in known}


def _names_only(message: DescriptorProto) -> DescriptorProto:
    bare = DescriptorProto(name=message.name, nested_type=map(_names_only, message.nested_type))
    if message.options.map_entry:
        bare.options.map_entry = True
    return bare
