"""Find a value's writer by the id or GUID of its envelope.

A schema that the subject got later waits for the topic's next opening. Other subjects' schemas are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from archiver.errors import BadSchema, NewerSchema
from archiver.schemas.avro.registered_schema import WriterSchema
from archiver.schemas.registry.client import client_of
from archiver.schemas.registry.envelope import (
    BAD_SCHEMA,
    BodyChoice,
    EnvelopeVerdict,
    head_bytes,
)
from archiver.schemas.registry.ids import RegistryIds
from archiver.schemas.registry.schema_kind import number_context
from archiver.schemas.registry.value_heads import Numbers, ValueHeads
from catalog.model import SchemaIdentity, SchemaNumber
from schema_mapping.avro.schema import MOST_WRITERS

OTHER_SCHEMA: Final = "other_schema@1"
"""The error of a value whose schema isn't one of the topic's subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterChoice:
    messages: tuple[str, ...]
    fingerprints: tuple[str, ...]
    registry: RegistryIds[WriterSchema]
    subject: str
    numbered: tuple[tuple[SchemaNumber, str], ...] = ()
    unapproved: tuple[str, ...] = ()

    @property
    def min_bytes(self) -> int:
        return 0

    def verdicts(
        self,
        schema_id: SchemaNumber,
        rows: Numbers,
        column: ValueHeads,  # noqa: ARG002 - the id says all
    ) -> Iterator[tuple[Numbers, EnvelopeVerdict]]:
        """Raises NewerSchema, and as `RegistryIds.schema`."""
        yield rows, self._verdict(schema_id)

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        return self.registry.to_keep(set(schema_ids) - {number for number, _ in self.numbered})

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> WriterChoice:
        """Ids of other contexts are ignored."""
        more = {schema.id: schema.fingerprint for schema in self.registry.kept(schemas)}
        numbers = dict(self.numbered) | more
        return replace(self, numbered=tuple((number, numbers[number]) for number in sorted(numbers, key=str)))

    def beside(self, waiting: BodyChoice) -> WriterChoice:
        """Give values of unapproved writers an error, instead of raising NewerSchema."""
        more = waiting.fingerprints if isinstance(waiting, WriterChoice) else ()
        return replace(self, unapproved=tuple(more))

    def _verdict(self, schema_id: SchemaNumber) -> EnvelopeVerdict:
        length = head_bytes(schema_id)
        try:
            fingerprint = self._fingerprint(schema_id)
        except BadSchema:
            return EnvelopeVerdict(length, BAD_SCHEMA)
        if fingerprint is None:
            return EnvelopeVerdict.unknown(schema_id, length)
        if fingerprint in self.fingerprints:
            return EnvelopeVerdict(length, None, self.fingerprints.index(fingerprint))
        if fingerprint not in self.unapproved and fingerprint in self._of_subject():
            raise NewerSchema(
                "a record has a schema that its subject got after the topic was opened; the next run opens the topic"
                " with it",
                subject=self.subject,
                **number_context(schema_id),
            )
        return EnvelopeVerdict(length, OTHER_SCHEMA)

    def _fingerprint(self, schema_id: SchemaNumber) -> str | None:
        fingerprint = dict(self.numbered).get(schema_id)
        if fingerprint is not None:
            return fingerprint
        schema = self.registry.schema(schema_id)
        return None if schema is None else schema.fingerprint

    def _of_subject(self) -> frozenset[str]:
        schemas = client_of(self.registry.settings).schemas(self.registry.kind)
        return frozenset(schema.fingerprint for schema in schemas.versions(self.subject, MOST_WRITERS))
