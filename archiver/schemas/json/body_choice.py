"""Read envelopes before JSON, with any JSON Schema: JSON names its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from archiver.errors import BadSchema
from archiver.schemas.json.registered_schema import JsonTypes
from archiver.schemas.registry.envelope import (
    BAD_SCHEMA,
    BodyChoice,
    EnvelopeVerdict,
    head_bytes,
)
from archiver.schemas.registry.ids import RegistryIds
from archiver.schemas.registry.value_heads import Numbers, ValueHeads
from catalog.model import SchemaIdentity, SchemaNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonBodies:
    """Members of other schemas are unknown members."""

    messages: tuple[str, ...]
    registry: RegistryIds[JsonTypes]
    numbers: frozenset[SchemaNumber] = frozenset()

    @property
    def min_bytes(self) -> int:
        return 0

    def verdicts(
        self,
        schema_id: SchemaNumber,
        rows: Numbers,
        column: ValueHeads,  # noqa: ARG002 - the id says all
    ) -> Iterator[tuple[Numbers, EnvelopeVerdict]]:
        """Raises as `RegistryIds.schema`."""
        yield rows, self._verdict(schema_id)

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        return self.registry.to_keep(set(schema_ids) - self.numbers)

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> JsonBodies:
        """Ids of other contexts are ignored."""
        return replace(self, numbers=self.numbers | {schema.id for schema in self.registry.kept(schemas)})

    def beside(self, waiting: BodyChoice) -> JsonBodies:  # noqa: ARG002 - no schema of a value waits
        return self

    def _verdict(self, schema_id: SchemaNumber) -> EnvelopeVerdict:
        length = head_bytes(schema_id)
        try:
            is_there = schema_id in self.numbers or self.registry.schema(schema_id) is not None
        except BadSchema:
            return EnvelopeVerdict(length, BAD_SCHEMA)
        if not is_there:
            return EnvelopeVerdict.unknown(schema_id, length)
        return EnvelopeVerdict(length, None, 0)
