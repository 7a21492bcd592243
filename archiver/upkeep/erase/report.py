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

    `spans` are (partition, start, end). `salt` proves the condition of `condition_hash` and is stored nowhere. `copies`
    are uploads too young to delete. `rewriters` may still upload such records, or their hashes. `unfinished`
    erasures continue with `--finish`, `unsearched` ones with their condition; `given_up` ones were followed by a
    complete search. `is_searched_beside_builds` if the condition found no records while builds of the index ran: run it
    again.

    `local` files in the spool also have the only copy of other records. Manifests have values of `partition_columns`.

    `conditions` are the hashes of the conditions of all erasures that were open, by their ids; empty if offsets were
    named. `erased` are all offsets that were ever erased, if an erasure was open: of these, no object has a record any
    more once nothing is unfinished.

    `unjudged` are offsets (partition, start, end) of records that stay and may be meant: the condition asks for
    columns, and theirs don't tell. `doubtful` are the erasures in `finished` that left such records.
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
        """The offsets in `spans`: of `rows`, and of retired records that the store still had."""
        return sum(end - start for _, start, end in self.spans)

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
