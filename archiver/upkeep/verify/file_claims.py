"""Check a footer's claims against the file's rows and topic."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final, Self

from archiver.archive.table_files import ValueBounds
from archiver.storage.segment import SegmentMetadata
from archiver.upkeep.verify.findings import Fault, FaultKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    cluster_id: str
    topic: str
    topic_id: str
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileClaim:
    """A footer's claims. Files of other engines claim only their rows."""

    rows: int
    digest: str | None
    schema_version: int | None
    partition: int | None = None
    start_offset: int | None = None
    end_offset: int | None = None
    files: int = 1

    @classmethod
    def of(cls, metadata: SegmentMetadata) -> Self:
        origin = metadata.origin
        return cls(
            rows=metadata.rows,
            digest=metadata.digest,
            schema_version=metadata.schema_version,
            partition=origin.partition if origin else None,
            start_offset=origin.start_offset if origin else None,
            end_offset=origin.end_offset if origin else None,
            files=origin.files if origin else 1,
        )

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _OF_CLAIM}

    @property
    def is_ours(self) -> bool:
        return self.schema_version is not None


_OF_CLAIM: Final = tuple(field.name for field in fields(FileClaim))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOfFile:
    path: str
    digest: str
    partitions: ValueBounds | None
    offsets: ValueBounds | None


def check_claim(
    claim: FileClaim, metadata: SegmentMetadata, rows: RowsOfFile, *, identity: Identity, mappings: Mapping[int, str]
) -> Iterator[Fault]:
    origin, partitions, offsets = metadata.origin, rows.partitions, rows.offsets
    span = {"partition": claim.partition, "start_offset": claim.start_offset, "end_offset": claim.end_offset}
    if origin is not None:
        actual = (origin.cluster_id, origin.topic, origin.topic_id or identity.topic_id)
        if actual != (identity.cluster_id, identity.topic, identity.topic_id or origin.topic_id):
            yield Fault(
                kind=FaultKind.FOREIGN,
                message=f"the file holds records of another topic: {origin.topic} ({origin.topic_id}) of cluster"
                f" {origin.cluster_id}. Somebody put it there; restore the right file from a backup",
                file=rows.path,
            )
        is_inside = (
            partitions is None or (partitions.low, partitions.high) == (origin.partition, origin.partition)
        ) and (offsets is None or (offsets.low >= origin.start_offset and offsets.high < origin.end_offset))
        if not is_inside:
            yield Fault(
                kind=FaultKind.FOOTER,
                message="the footer claims other offsets than the file's rows have"
                f" ({_text(partitions)} and {_text(offsets)}): the footer or the rows were changed",
                file=rows.path,
                **span,
            )
    if claim.digest is not None and claim.digest != rows.digest:
        yield Fault(
            kind=FaultKind.DAMAGED,
            message=f"the file's records have the digest {rows.digest}, its footer says {claim.digest}: the file was"
            " changed after it was written; restore it from a backup",
            file=rows.path,
            **span,
        )
    for version, text in metadata.mappings.items():
        if version in mappings and not _are_same(mappings[version], text):
            yield Fault(
                kind=FaultKind.FOOTER,
                message=f"the footer has another mapping of schema version {version} than the journal or the registry:"
                " one of them was changed",
                file=rows.path,
                **span,
            )


@lru_cache(maxsize=64)
def _are_same(one: str, other: str) -> bool:
    return bool(json.loads(one) == json.loads(other))


def _text(bounds: ValueBounds | None) -> str:
    return "none" if bounds is None else f"{bounds.low} to {bounds.high}"
