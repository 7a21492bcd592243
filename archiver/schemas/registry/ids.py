"""The ids of a schema registry, for tasks: which schema an id or GUID in a record means.

These objects pickle. All with the same settings in a process share the registry's answers.
"""

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
    """The ids of one kind of schemas, for a topic's keys or values. `subject` says which context they count in."""

    settings: SchemaRegistrySettings
    kind: SchemaKind[SchemaT]
    subject: str | None = None

    def schema(self, number: SchemaNumber) -> SchemaT | None:
        """The schema of an id or GUID, from the schema registry. Returns and raises what `SchemasOfKind.by_id` does."""
        return client_of(self.settings).schemas(self.kind).by_id(number, self.subject)

    def to_keep(self, numbers: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        """The schemas of these ids as bytes to keep. Ids that the registry doesn't know are left out."""
        schemas = ((number, self.schema(number)) for number in sorted(numbers, key=str))
        return {
            identity_of(number, self.subject): schema.to_bytes() for number, schema in schemas if schema is not None
        }

    def kept(self, schemas: Mapping[SchemaIdentity, bytes]) -> Iterator[SchemaT]:
        """Those of the kept schemas that are of this kind and whose ids count in the same context."""
        for identity, data in schemas.items():
            if identity == identity_of(identity.number, self.subject):
                schema = self.kind.from_bytes(identity.number, data)
                if schema is not None:
                    yield schema


def identity_of(number: SchemaNumber, subject: str | None) -> SchemaIdentity:
    """The identity of the schema that records of this subject name so."""
    return SchemaIdentity(number, "" if isinstance(number, UUID) else context_of(subject))
