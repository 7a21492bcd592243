"""Finds the message that the schema id and message indexes of an envelope stand for.

These objects pickle, so that tasks can carry them. They ask the schema registry only about ids that they don't know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from archiver.schemas.registered_schema import CompiledSchema, Indexes, messages_at
from archiver.schemas.schema_registry import client_of
from archiver.schemas.schema_registry_settings import SchemaRegistrySettings


class SchemaIds(Protocol):
    """Knows what the schema ids and message indexes of envelopes mean."""

    def messages(self, schema_id: int, indexes: Indexes) -> frozenset[str] | None:
        """The full names of the messages that they may mean. Empty if the schema has no such message.

        None if the schema registry has no such id. Raises the subclasses of SchemaRegistryError if the schema registry
        can't say what the id means; BadSchema is the one that never goes away.
        """

    def learned(self, schema_ids: Iterable[int]) -> Mapping[int, bytes]:
        """The schemas, as `CompiledSchema.to_bytes` writes them, of those ids that had to be asked for."""

    def with_schemas(self, schemas: Mapping[int, bytes]) -> SchemaIds:
        """A copy that knows these schemas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownId:
    """A schema id with the names of its messages. `names` is the main file, with everything else removed."""

    id: int
    names: bytes

    @classmethod
    def of(cls, schema: CompiledSchema) -> KnownId:
        """The part of a schema that is needed to read envelopes."""
        bare = FileDescriptorProto(package=schema.main.package, message_type=map(_names_only, schema.main.message_type))
        return cls(id=schema.id, names=bare.SerializeToString(deterministic=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistryIds:
    """The ids of a schema registry. It is asked about ids that aren't in `known`.

    All objects with the same settings in a process share its answers.
    """

    settings: SchemaRegistrySettings
    known: tuple[KnownId, ...] = ()

    def messages(self, schema_id: int, indexes: Indexes) -> frozenset[str] | None:
        """The full names of the messages that they may mean."""
        main = _by_id(self.known).get(schema_id)
        if main is not None:
            return messages_at(main, indexes)
        schema = client_of(self.settings).by_id(schema_id)
        return None if schema is None else schema.messages_at(indexes)

    def learned(self, schema_ids: Iterable[int]) -> Mapping[int, bytes]:
        """The schemas of those ids that aren't in `known`."""
        known = _by_id(self.known)
        found = {each: client_of(self.settings).by_id(each) for each in sorted(set(schema_ids) - known.keys())}
        return {schema_id: schema.to_bytes() for schema_id, schema in found.items() if schema is not None}

    def with_schemas(self, schemas: Mapping[int, bytes]) -> SchemaRegistryIds:
        """A copy that knows these schemas."""
        more = {each: KnownId.of(CompiledSchema.from_bytes(each, data)) for each, data in schemas.items()}
        known = {each.id: each for each in self.known} | more
        return replace(self, known=tuple(known[each] for each in sorted(known)))


@lru_cache(maxsize=64)
def _by_id(known: tuple[KnownId, ...]) -> dict[int, FileDescriptorProto]:
    return {each.id: FileDescriptorProto.FromString(each.names) for each in known}


def _names_only(message: DescriptorProto) -> DescriptorProto:
    bare = DescriptorProto(name=message.name, nested_type=map(_names_only, message.nested_type))
    if message.options.map_entry:
        bare.options.map_entry = True
    return bare
