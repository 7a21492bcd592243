"""Reads Avro's single-object encoding: C3 01, the fingerprint of the writer's schema, and the value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import pyarrow as pa

from archiver.errors import NewerSchema, SchemaRegistryError
from archiver.schemas.avro.registered_schema import WriterSchema
from archiver.schemas.registry.client import client_of
from archiver.schemas.registry.envelope import BAD_ENVELOPE, EnvelopeReader, Envelopes, Flags
from archiver.schemas.registry.ids import RegistryIds
from archiver.schemas.registry.value_heads import Bytes, Numbers, ValueHeads
from catalog.model import SchemaIdentity, SchemaNumber
from schema_mapping.avro.fingerprint import schema_fingerprint
from schema_mapping.avro.schema import MOST_WRITERS
from schema_mapping.value_format import NOT_ONE

UNKNOWN_FINGERPRINT: Final = "unknown_fingerprint@2"
"""The error of a value whose schema is neither in the topic's files nor a version of its subject."""
MARKER: Final = b"\xc3\x01"
FINGERPRINT_BYTES: Final = 8
HEAD_BYTES: Final = len(MARKER) + FINGERPRINT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectVersions:
    """The versions of a subject. Unapproved ones are not waited for."""

    registry: RegistryIds[WriterSchema]
    subject: str
    unapproved: frozenset[bytes] = frozenset()

    def check(self, fingerprints: frozenset[bytes]) -> None:
        """Raise NewerSchema, and subclasses of SchemaRegistryError."""
        schemas = client_of(self.registry.settings).schemas(self.registry.kind)
        versions = schemas.versions(self.subject, MOST_WRITERS)
        registered = frozenset(schema_fingerprint(schema.text) for schema in versions)
        if newer := fingerprints & registered - self.unapproved:
            raise NewerSchema(
                "a record has a schema that its subject got after the topic was opened; the next run opens the topic"
                " with it",
                subject=self.subject,
                fingerprint=min(newer).hex(),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleObjects:
    """Each of `messages` has a fingerprint. `versions` is None for schemas from files."""

    messages: tuple[str, ...]
    fingerprints: tuple[bytes, ...]
    versions: SubjectVersions | None = None

    def read(self, values: pa.BinaryArray, headers: pa.ListArray | None = None) -> Envelopes:  # noqa: ARG002 - the value says all
        """Find each value's writer. The first of several with the same fingerprint: their bytes mean the same.

        Raises NewerSchema, and subclasses of SchemaRegistryError, with the first `row`.
        """
        column = ValueHeads.of(values)
        is_there = np.array(values.is_valid())
        marked = is_there & column.begin_with(MARKER, np.arange(len(values))) & (column.sizes >= HEAD_BYTES)
        rows = np.flatnonzero(marked)
        which = np.full(len(values), NOT_ONE, dtype=np.int16)
        which[rows] = self._writers(column.bytes_at(rows, len(MARKER), FINGERPRINT_BYTES), rows)
        unknown = marked & (which == NOT_ONE)
        errors: dict[str, Flags] = {BAD_ENVELOPE: is_there & ~marked, UNKNOWN_FINGERPRINT: unknown}
        return Envelopes(
            lengths=np.where(which == NOT_ONE, 0, HEAD_BYTES).astype(np.int32),
            which=which,
            errors={code: flags for code, flags in errors.items() if flags.any()},
            bare=None,
            schema_ids=frozenset(),
        )

    def _writers(self, fingerprints: Bytes, rows: Numbers) -> Numbers:
        distinct, indexes = np.unique(fingerprints.view(np.uint64)[:, 0], return_inverse=True)
        first = {name: number for number, name in reversed(list(enumerate(self.fingerprints)))}
        numbers = [first.get(number.tobytes(), NOT_ONE) for number in distinct]
        writers = np.array(numbers, dtype=np.int64)[indexes]
        unknown = frozenset(
            number.tobytes() for number, writer in zip(distinct, numbers, strict=True) if writer == NOT_ONE
        )
        if unknown and self.versions is not None:
            try:
                self.versions.check(unknown)
            except SchemaRegistryError as error:
                row = int(rows[np.flatnonzero(writers == NOT_ONE)[0]])
                raise type(error)(error.message, **{**error.context, "row": row}) from error
        return writers

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:  # noqa: ARG002 - values have no ids
        return {}

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> Self:  # noqa: ARG002 - values have no ids
        return self

    def beside(self, waiting: EnvelopeReader | None) -> Self:
        """Return a copy that gives unapproved writers' values an error, instead of raising NewerSchema."""
        if self.versions is None or not isinstance(waiting, SingleObjects):
            return self
        return replace(self, versions=replace(self.versions, unapproved=frozenset(waiting.fingerprints)))
