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
    """What an erasure found and did. Filled during the run.

    `spans` (partition, start, end) are the offsets found, `offsets` their number by partition. `salt` proves the
    condition of `condition_hash` and is stored nowhere. `copies` are uploads of dead jobs too young to delete.
    `rewriters` are runs of other jobs that may still upload such records. `finished` erasures have no object left;
    `unfinished` ones continue with `archiver erase TOPIC --finish`. `unsearched` ones must be run again with their
    condition. `given_up` ones were closed because a later search ended.

    `local` are files in this machine's spool that may have erased records beside the only copy of other records.
    `partition_columns` are the table's partition columns of keys and values: manifests have their values.

    `unjudged` (partition, start, end) are records that stay but may match: the condition needs columns that they lack.
    `doubtful` are finished erasures with such records.
    """

    topic: str
    table: str
    dry_run: bool
    erasure: str | None = None
    condition_hash: str = ""
    salt: str = ""
    rows: int = 0
    files: int = 0
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
    finished: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    unsearched: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    unjudged: tuple[tuple[int, int, int], ...] = ()
    doubtful: tuple[str, ...] = ()
    failures: dict[str, ContextError] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def succeeded(self) -> bool:
        """Whether the records are gone from every object (dry run: would be found)."""
        is_known = not (self.failures or self.unjudged or self.doubtful)
        return is_known and not self.purged.failures and (self.dry_run or not self.unfinished)

    @property
    def unjudged_records(self) -> dict[int, int]:
        """The number of unjudged records by partition."""
        found: dict[int, int] = {}
        for partition, start, end in self.unjudged:
            found[partition] = found.get(partition, 0) + end - start
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedSnapshots:
    """Snapshots with erased records that the owner's properties keep. The caller decides."""

    snapshots: tuple[Snapshot, ...]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSearched:
    """The files that may have such records, and their bytes."""

    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSearched:
    """Files that share ranges were searched, and rewritten if they have such records."""

    files: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsFound:
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseFailed:
    """A file could not be read or written, and stays as it is."""

    path: str
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseFinished:
    report: EraseReport


EraseEvent: TypeAlias = OwnedSnapshots | FilesSearched | FileSearched | RecordsFound | EraseFailed | EraseFinished

EraseObserver: TypeAlias = Observer[EraseEvent]
