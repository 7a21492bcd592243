"""Meanings of schema ids, for tasks. Picklable; a process shares the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic
from uuid import UUID

from archiver.schemas.registry.client import client_of
from archiver.schemas.registry.contexts import context_of
from archiver.schemas.registry.schema_kind import SchemaKind, SchemaT
from archiver.schemas.registry.settings import SchemaRegistrySettings
from catalog.model import SchemaIdentity, SchemaNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryIds(Generic[SchemaT]):
    settings: SchemaRegistrySettings
    kind: SchemaKind[SchemaT]
    subject: str | None = None

    def schema(self, number: SchemaNumber) -> SchemaT | None:
        """Returns and raises as `SchemasOfKind.by_id`."""
        return client_of(self.settings).schemas(self.kind).by_id(number, self.subject)

    def to_keep(self, numbers: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        schemas = ((number, self.schema(number)) for number in sorted(numbers, key=str))
        return {
            identity_of(number, self.subject): schema.to_bytes() for number, schema in schemas if schema is not None
        }

    def kept(self, schemas: Mapping[SchemaIdentity, bytes]) -> Iterator[SchemaT]:
        for identity, data in schemas.items():
            if identity == identity_of(identity.number, self.subject):
                schema = self.kind.from_bytes(identity.number, data)
                if schema is not None:
                    yield schema


def identity_of(number: SchemaNumber, subject: str | None) -> SchemaIdentity:
    return SchemaIdentity(number, "" if isinstance(number, UUID) else context_of(subject))
