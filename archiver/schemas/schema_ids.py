"""Which messages the ids in envelopes stand for.

The answer is a value that travels to tasks, and asks the schema registry only when it must.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from archiver.schemas.registered import CompiledSchema, Indexes, messages_at
from archiver.schemas.registry import client_of
from archiver.schemas.registry_http import SchemaRegistrySettings


class SchemaIds(Protocol):
    """What an envelope's schema id and message indexes mean."""

    def messages(self, schema_id: int, indexes: Indexes) -> frozenset[str] | None:
        """Full names that they may stand for, empty where the schema has no such message, None for an unknown id.

        Raises the leaves of SchemaRegistryError where the schema registry can't say, BadSchema where nothing ever can.
        """

    def learned(self, schema_ids: Iterable[int]) -> Mapping[int, bytes]:
        """The ids that the schema registry had to be asked for, each with what `CompiledSchema.to_bytes` gives."""

    def knowing(self, schemas: Mapping[int, bytes]) -> SchemaIds:
        """The same ids, with these schemas known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownId:
    """An id whose schema is known; `names` is the file that its indexes count, with nothing but names in it."""

    id: int
    names: bytes

    @classmethod
    def of(cls, schema: CompiledSchema) -> KnownId:
        """What has to be known of a schema."""
        bare = FileDescriptorProto(package=schema.main.package, message_type=map(_names_only, schema.main.message_type))
        return cls(id=schema.id, names=bare.SerializeToString(deterministic=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistryIds:
    """The ids of a schema registry, which is asked for none of `known`.

    In a process all values with the same settings share what was asked.
    """

    settings: SchemaRegistrySettings
    known: tuple[KnownId, ...] = ()

    def messages(self, schema_id: int, indexes: Indexes) -> frozenset[str] | None:
        """Full names that they may stand for."""
        main = _by_id(self.known).get(schema_id)
        if main is not None:
            return messages_at(main, indexes)
        schema = client_of(self.settings).by_id(schema_id)
        return None if schema is None else schema.messages_at(indexes)

    def learned(self, schema_ids: Iterable[int]) -> Mapping[int, bytes]:
        """Those of the ids that aren't among `known`, with their schemas."""
        known = _by_id(self.known)
        found = {each: client_of(self.settings).by_id(each) for each in sorted(set(schema_ids) - known.keys())}
        return {schema_id: schema.to_bytes() for schema_id, schema in found.items() if schema is not None}

    def knowing(self, schemas: Mapping[int, bytes]) -> SchemaRegistryIds:
        """The same ids, with these schemas known."""
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
