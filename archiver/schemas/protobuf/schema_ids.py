"""Find the message of a record's id or GUID and message indexes. Picklable."""

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
    def messages(self, schema_id: SchemaNumber, indexes: Indexes) -> frozenset[str] | None:
        """Full names; empty if there is no such message, None for an unknown id.

        Raises subclasses of SchemaRegistryError; only BadSchema is permanent.
        """

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]: ...

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> SchemaIds: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownId:
    """`names` is the main file, without everything else."""

    id: SchemaNumber
    names: bytes

    @classmethod
    def of(cls, schema: CompiledSchema) -> KnownId:
        bare = FileDescriptorProto(package=schema.main.package, message_type=map(_names_only, schema.main.message_type))
        return cls(id=schema.id, names=bare.SerializeToString(deterministic=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistryIds:
    registry: RegistryIds[CompiledSchema]
    known: tuple[KnownId, ...] = ()

    def messages(self, schema_id: SchemaNumber, indexes: Indexes) -> frozenset[str] | None:
        main = _by_id(self.known).get(schema_id)
        if main is not None:
            return messages_at(main, indexes)
        schema = self.registry.schema(schema_id)
        return None if schema is None else schema.messages_at(indexes)

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        return self.registry.to_keep(set(schema_ids) - _by_id(self.known).keys())

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> SchemaRegistryIds:
        """Ids of other contexts are ignored."""
        more = {schema.id: KnownId.of(schema) for schema in self.registry.kept(schemas)}
        by_number = {schema.id: schema for schema in self.known} | more
        return replace(self, known=tuple(by_number[number] for number in sorted(by_number, key=str)))


@lru_cache(maxsize=64)
def _by_id(known: tuple[KnownId, ...]) -> dict[SchemaNumber, FileDescriptorProto]:
    return {schema.id: FileDescriptorProto.FromString(schema.names) for schema in known}


def _names_only(message: DescriptorProto) -> DescriptorProto:
    bare = DescriptorProto(name=message.name, nested_type=map(_names_only, message.nested_type))
    if message.options.map_entry:
        bare.options.map_entry = True
    return bare
