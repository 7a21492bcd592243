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
    """What an erasure found and did. It is filled during the run.

    `spans` are the offsets that were found (partition, start, end), `offsets` how many these are by partition.
    `salt` proves later which condition the `condition_hash` is of; it is kept nowhere. `copies` are uploads of dead
    jobs that may hold some of the records and are too young to be deleted. `rewriters` are runs of other jobs that may
    have read some before, and may still upload them. `finished` are the erasures of which no
    object has a record any more; those of `unfinished` go on with `archiver erase TOPIC --finish`. `unsearched` are
    those among them whose search was cut short: run them again with their condition. `given_up` are such ones that were
    closed, because the search of a later one ended: nothing is said of their records.

    `local` are files in this machine's spool that may hold some, and records that nothing else has.
    `partition_columns` are the columns of keys and values that the table is partitioned by, or was: manifests of the
    snapshot that erased have their values.

    `conditions` are the hashes of the conditions of all erasures that were open, by their ids; empty if offsets were
    named. `erased` are all offsets that were ever erased, if an erasure was open: of these, no object has a record any
    more once nothing is unfinished.

    `unjudged` are offsets (partition, start, end) of records that stay and may be meant: the condition asks for
    columns, and theirs don't tell. `doubtful` are those of `finished` that left such records.
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
        return is_known and not self.purged.failures and (self.dry_run or not self.unfinished)

    @property
    def unjudged_records(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for partition, start, end in self.unjudged:
            found[partition] = found.get(partition, 0) + end - start
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedSnapshots:
    """Snapshots with erased records that these properties keep. The caller decides."""

    snapshots: tuple[Snapshot, ...]
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSearched:
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
    path: str
    error: ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseFinished:
    report: EraseReport


EraseEvent: TypeAlias = OwnedSnapshots | FilesSearched | FileSearched | RecordsFound | EraseFailed | EraseFinished

EraseObserver: TypeAlias = Observer[EraseEvent]
