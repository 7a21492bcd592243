"""The findings of a verification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self


class FaultKind(StrEnum):
    MISSING_FILE = "missing file"
    """The table names a file that the store doesn't have."""
    DAMAGED = "damaged"
    """A file can't be read, or its records aren't those that were archived."""
    UNREADABLE = "unreadable"
    """A file couldn't be read for a reason that says nothing about it: the store, credentials, a worker that died."""
    FOREIGN = "foreign"
    """A file or rows of another topic, partition or range: somebody put them there."""
    DELETED = "deleted by others"
    """Others took archived records out of the table."""
    ALTERED = "rewritten by others"
    """Others changed archived records, or added rows with their offsets."""
    FOOTER = "footer"
    """A file's footer contradicts its rows, or what is known of the file."""
    MANIFEST = "manifest"
    """The table's manifests contradict the file."""
    JOURNAL = "journal"
    """An entry of the journal is missing, can't be read, or contradicts the records."""
    REGISTRY = "registry"
    """The registry contradicts the journal."""
    SUMMARY = "summary"
    """A snapshot's summary contradicts the journal or the records."""
    HISTORY = "history"
    """The table was set back, or its offsets aren't those of its ranges."""
    UNACCOUNTED = "unaccounted"
    """Offsets before the archive's end of which nothing says what became of them."""
    KAFKA = "kafka"
    """The brokers have other records than the archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`message` says what to do, too. Offsets are half-open."""

    kind: FaultKind
    message: str
    file: str | None = None
    partition: int | None = None
    start_offset: int | None = None
    end_offset: int | None = None

    @property
    def place(self) -> str:
        parts = [] if self.partition is None else [f"partition {self.partition}"]
        if self.start_offset is not None:
            parts.append(f"[{self.start_offset}, {self.end_offset})")
        return " ".join([*parts, *([self.file] if self.file else [])])

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**{**value, "kind": FaultKind(value["kind"])})


class GapKind(StrEnum):
    """Why the table has no record at offsets, or why its records aren't proven."""

    NO_RECORD = "no record in Kafka"
    """Transaction markers, aborted transactions, and records that Kafka's compaction had removed."""
    LOST = "lost and accepted"
    RETIRED = "retired"
    ERASED = "erased"
    DELETED = "deleted by others"
    REWRITTEN = "rewritten by others"
    DAMAGED = "damaged"
    MISSING_FILE = "missing file"
    UNACCOUNTED = "unaccounted"
    NOT_READ = "not read"
    """Outside of the sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Half-open offsets without proven records, and their `count`.

    Of erased, retired and deleted records only number and range are known.
    """

    kind: GapKind
    partition: int
    start_offset: int
    end_offset: int
    count: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Proof(StrEnum):
    DIGEST = "digest"
    """They have the digest that was kept when they were archived or rewritten."""
    FILES = "files"
    """Each of their files has the digest in its footer; some records of the range are gone and accepted to be."""
    COUNT = "count"
    """Only their number is known: their files are older than digests, or others rewrote them after some went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """Half-open offsets whose records are in the table as archived."""

    partition: int
    start_offset: int
    end_offset: int
    rows: int
    digest: str
    proof: Proof = Proof.DIGEST

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
