"""The report of a search for orphans, and its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeAlias

from archiver.observer import Observer
from schema_mapping.errors import ContextError


class OrphanKind(StrEnum):
    UNKNOWN = "unknown"
    """A data file that the registry does not know: its job died between upload and staging."""
    REJECTED = "rejected"
    """A data file whose offsets came into the table in another file."""
    REPLACED = "replaced"
    """A data file that a rewrite took out of the table, and that no snapshot has any more."""
    MANIFEST = "manifest"
    """A manifest or manifest list of a commit that can't land any more, or of snapshots that have expired."""


class KeptFor(StrEnum):
    AGE = "age"
    """It is too young."""
    REGISTRY = "registry"
    """It waits for a commit, is committed as far as the registry knows, or is in an unresolved rewrite."""
    JOURNAL = "journal"
    """The journal has it, though the registry doesn't: run `archiver registry rebuild`."""
    OFFSETS = "offsets"
    """It has offsets that the table does not have yet: it may be the only copy."""
    HOLD = "hold"
    """It has records that were removed, and a legal hold is on the topic by its configuration."""
    PROMISE = "promise"
    """An erasure that isn't finished has promised it to readers of older snapshots: `archiver erase --finish`."""
    SHARED = "gc.enabled"
    """The table's `gc.enabled` is false, and a snapshot may have named it: another table may have it."""
    FOOTER = "footer"
    """Its footer doesn't show that it belongs to this archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    path: str
    name: str
    size: int
    modified_ms: int
    kind: OrphanKind
    ulid: str | None = None
    """The ULID of a data file, by which the registry may know it."""

    @property
    def modified(self) -> str:
        """Like `2026-01-31T00:00:00Z`."""
        return datetime.fromtimestamp(self.modified_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True, kw_only=True)
class TopicOrphans:
    """Filled during the run. `shared` are orphans that the owner has since forbidden to delete.

    `forgotten` counts registered files gone from table and store.
    """

    topic: str
    table: str
    listed: int = 0
    orphans: tuple[Orphan, ...] = ()
    kept: Counter[KeptFor] = field(default_factory=Counter)
    deleted: list[Orphan] = field(default_factory=list)
    needed_again: list[Orphan] = field(default_factory=list)
    shared: list[Orphan] = field(default_factory=list)
    forgotten: int = 0
    failures: dict[str, ContextError] = field(default_factory=dict)
    error: ContextError | None = None

    @property
    def succeeded(self) -> bool:
        return self.error is None and not self.failures


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansReport:
    """`spool_folders` counts folders that dead tasks left in the local spool."""

    topics: tuple[TopicOrphans, ...]
    deletes: bool
    older_than: float
    spool_folders: int
    seconds: float

    @property
    def succeeded(self) -> bool:
        return all(topic.succeeded for topic in self.topics)

    @property
    def kinds(self) -> Mapping[OrphanKind, tuple[int, int]]:
        counted: dict[OrphanKind, tuple[int, int]] = {}
        for item in (orphan for topic in self.topics for orphan in topic.orphans):
            number, size = counted.get(item.kind, (0, 0))
            counted[item.kind] = (number + 1, size + item.size)
        return counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectsListed:
    topic: str
    objects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansFound:
    topic: str
    orphans: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansRemoved:
    topic: str
    orphans: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanFailed:
    """Without a `path`, the search failed."""

    topic: str
    path: str | None
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphansFinished:
    report: OrphansReport


OrphanEvent: TypeAlias = ObjectsListed | OrphansFound | OrphansRemoved | OrphanFailed | OrphansFinished

OrphanObserver: TypeAlias = Observer[OrphanEvent]
