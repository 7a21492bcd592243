"""The report of an erasure, and its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pyiceberg.table.snapshots import Snapshot

from archiver.observer import Observer
from archiver.upkeep.removal.purge import Purged
from schema_mapping.errors import ContextError


@dataclass(slots=True, kw_only=True)
class EraseReport:
    """Filled during the run. `spans` and `unjudged` are (partition, start, end).

    `salt` proves the condition of `condition_hash` and is stored nowhere. `copies` are uploads too young to delete.
    `rewriters` may still upload such records. `unfinished` erasures continue with `--finish`, `unsearched` ones with
    their condition; a complete search followed `given_up` ones. `is_searched_beside_builds`: run the condition again.

    `local` files in the spool also have the only copy of other records. Manifests have values of `partition_columns`.

    `conditions` are hashes by open erasure. `erased` are all offsets ever erased, if an erasure was open.

    `metadata` are the ids of metadata entries that name such records.

    `unjudged` records stay and may match: their columns are unknown. `doubtful` erasures in `finished` left such
    records.
    """

    topic: str
    table: str
    dry_run: bool
    erasure: str | None = None
    condition_hash: str = ""
    salt: str = ""
    rows: int = 0
    files: int = 0
    metadata: set[str] = field(default_factory=set)
    offsets: Mapping[int, int] = field(default_factory=dict)
    spans: tuple[tuple[int, int, int], ...] = ()
    commits: list[str] = field(default_factory=list)
    purged: Purged = field(default_factory=Purged)
    copies: tuple[str, ...] = ()
    copies_deleted: int = 0
    local: tuple[str, ...] = ()
    local_deleted: int = 0
    partition_columns: tuple[str, ...] = ()
    rewriters: tuple[str, ...] = ()
    is_searched_beside_builds: bool = False
    finished: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    unsearched: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict)
    erased: tuple[tuple[int, int, int], ...] = ()
    unjudged: tuple[tuple[int, int, int], ...] = ()
    doubtful: tuple[str, ...] = ()
    failures: dict[str, ContextError] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def succeeded(self) -> bool:
        """Whether the records are gone from every object (dry run: would be found)."""
        is_known = not (self.failures or self.unjudged or self.doubtful)
        return is_known and not self.purged.failures and (self.dry_run or not (self.unfinished or self.rewriters))

    @property
    def offset_count(self) -> int:
        return sum(end - start for _, start, end in self.spans)

    @property
    def unjudged_records(self) -> dict[int, int]:
        counts: dict[int, int] = {}
        for partition, start, end in self.unjudged:
            counts[partition] = counts.get(partition, 0) + end - start
        return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedSnapshots:
    """Snapshots with erased records that these properties keep."""

    snapshots: tuple[Snapshot, ...]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSearched:
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSearched:
    """Files that share ranges were searched together."""

    files: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsFound:
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseFailed:
    path: str
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseFinished:
    report: EraseReport


EraseEvent: TypeAlias = OwnedSnapshots | FilesSearched | FileSearched | RecordsFound | EraseFailed | EraseFinished

EraseObserver: TypeAlias = Observer[EraseEvent]
