"""Exactly-once commits: bring ranges into a table, or find out why that can't be done (docs/concepts.md, step 4).

An answer of the catalog is not trusted to be complete. After a time-out, a 5xx, a conflict or a refusal the table
itself decides: first by the id of the commit, then by its offsets. A request is sent again only if the offsets show
that the commit is not in the table.

A load is not trusted to be current either: it may come from a cache or a replica. A load that is older than the last
attempt decides nothing, and manifests are deleted only if the table proves that their snapshot can't be in it (ADR
0064).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pyiceberg import exceptions

from catalog.errors import TableError
from catalog.iceberg import properties as keys
from catalog.iceberg.append import Attempt, prepare
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import check_lineage
from catalog.iceberg.offsets import advance, in_order, spans
from catalog.iceberg.rest import FAILURES, REFUSALS
from catalog.iceberg.schema_change import SchemaChange
from catalog.model import PartitionOffset, TranslatedRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The ranges are in the table: the snapshot that brought them, and the offsets of every partition after it."""

    commit_id: str
    snapshot_id: int
    offsets: Mapping[int, PartitionOffset]


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedPartition:
    """A partition whose offset in the table (`found`) is not where its ranges start (`expected`)."""

    partition: int
    expected: int
    found: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsMoved:
    """Nothing was committed, because these partitions have other offsets. Settle their ranges, then plan again."""

    partitions: tuple[MovedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """The outcome is not known yet. The ranges stay staged and their files stay where they are; settle them later."""

    commit_id: str
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedCommit:
    """A commit that is in the table.

    `table` is the table that the commit was made on or, with `is_found`, a later one that has it.
    """

    snapshot_id: int
    table: ArchiveTable
    is_found: bool


CommitOutcome: TypeAlias = Committed | OffsetsMoved | Unresolved
Obstacle = TypeVar("Obstacle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How often a commit is tried, and the pauses between tries.

    Pauses double, and each is shortened at random by up to half. No pause is shorter than the catalog asked for
    (`asked_seconds`). If it asks for more than `longest_asked_seconds`, there is no further try.
    """

    attempts: int = 8
    first_seconds: float = 0.2
    longest_seconds: float = 10.0
    longest_asked_seconds: float = 60.0
    pause: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    asked_seconds: Callable[[], float] = float

    def __iter__(self) -> Iterator[int]:
        for attempt in range(self.attempts):
            if attempt:
                longest = min(self.first_seconds * 2 ** (attempt - 1), self.longest_seconds)
                if (asked := self.asked_seconds()) > self.longest_asked_seconds:
                    return
                self.pause(max(longest * (1 - self.jitter() / 2), asked))
            yield attempt


Load: TypeAlias = Callable[[], ArchiveTable]
Send: TypeAlias = Callable[[Attempt], None]


def commit(
    *,
    load: Load,
    send: Send,
    ranges: Sequence[TranslatedRange],
    change: SchemaChange | None,
    commit_id: str,
    backoff: Backoff,
) -> CommitOutcome:
    """Append the ranges in one snapshot, once.

    `load` gives the table. `send` sends an attempt and raises pyiceberg's exceptions. If the catalog refuses an attempt
    for a reason that another try won't change, and the table doesn't have it, the refusal is raised. The ranges stay
    staged: settling them finds out whether the table has them after all.
    """
    wanted = spans(ranges)
    if not wanted:
        raise ValueError("a commit needs at least one range")

    def moved(table: ArchiveTable) -> OffsetsMoved | None:
        check_lineage(table)
        partitions = _moved(table, wanted)
        return OffsetsMoved(partitions=partitions) if partitions else None

    def attempt(table: ArchiveTable) -> Attempt:
        return prepare(table, in_order(ranges), change=change, commit_id=commit_id)

    done = commit_once(load=load, send=send, obstacle=moved, attempt=attempt, commit_id=commit_id, backoff=backoff)
    if not isinstance(done, LandedCommit):
        return done
    offsets = done.table.offsets if done.is_found else advance(done.table.offsets, ranges)
    return Committed(commit_id=commit_id, snapshot_id=done.snapshot_id, offsets=offsets)


def commit_once(
    *,
    load: Load,
    send: Send,
    obstacle: Callable[[ArchiveTable], Obstacle | None],
    attempt: Callable[[ArchiveTable], Attempt],
    commit_id: str,
    backoff: Backoff,
) -> LandedCommit | Obstacle | Unresolved:
    """Bring one snapshot into the table, once.

    `obstacle` says why the commit can't be made on a table that lacks it. It must hold for every table that has the
    commit. `attempt` prepares the commit on a table. Raises like `commit`.
    """
    sent: tuple[Attempt, ...] = ()
    failure: Exception | None = None
    reason = ""
    for _ in backoff:
        try:
            table = load()
        except TableError as error:
            if not sent or not error.retryable:
                raise
            reason = str(error)
            continue
        if (snapshot_id := find_commit(table, commit_id)) is not None:
            _discard_lost(sent, table)
            return LandedCommit(snapshot_id=snapshot_id, table=table, is_found=True)
        newest = max((earlier.sequence for earlier in sent), default=0)
        if table.last_sequence_number + 1 < newest:  # what it lacks may have landed since
            reason = f"{_said(failure)}. After that the catalog returned an older state of the table"
            continue
        if failure is not None and _is_final(failure, has_moved=table.last_sequence_number >= newest):
            raise failure
        if (met := obstacle(table)) is not None:
            return met
        kept = _discard_lost(sent, table)
        latest = attempt(table)
        sent = (*kept, latest)
        failure = _try(send, latest)
        if failure is None:
            _discard_beaten(kept, latest)
            return LandedCommit(snapshot_id=latest.snapshot_id, table=table, is_found=False)
        reason = _said(failure)
    return Unresolved(commit_id=commit_id, attempts=backoff.attempts, reason=reason)


def _try(send: Send, attempt: Attempt) -> Exception | None:
    """Send the attempt. Return the failure, None on success."""
    try:
        send(attempt)
    except FAILURES as error:
        return error
    return None


def _is_final(failure: Exception, *, has_moved: bool) -> bool:
    """Whether another try won't change a failure of the last attempt. The table doesn't have the commit.

    Older REST servers answer 400 if a commit on another branch took the attempt's sequence number. Then the table has
    moved, and the next attempt gets a later number.
    """
    return isinstance(failure, REFUSALS) and not (isinstance(failure, exceptions.BadRequestError) and has_moved)


def _said(failure: Exception | None) -> str:
    return "" if failure is None else f"{type(failure).__name__}: {failure}"


def find_commit(table: ArchiveTable, commit_id: str) -> int | None:
    """The snapshot that a commit made. None where the table's history does not have it, or no longer."""
    for snapshot in reversed(table.iceberg.metadata.snapshots):
        if snapshot.summary is not None and snapshot.summary.additional_properties.get(keys.COMMIT_ID) == commit_id:
            return snapshot.snapshot_id
    return None


def _moved(table: ArchiveTable, wanted: Mapping[int, tuple[int, int]]) -> tuple[MovedPartition, ...]:
    offsets = table.offsets
    return tuple(
        MovedPartition(partition=partition, expected=start, found=offsets[partition].next_offset)
        for partition, (start, _) in wanted.items()
        if partition in offsets and offsets[partition].next_offset != start
    )


def _discard_lost(attempts: Sequence[Attempt], table: ArchiveTable) -> tuple[Attempt, ...]:
    """Delete the manifests of attempts that are provably not in the table and never will be; return the other attempts.

    `archiver orphans` deletes manifests of other attempts once the table is past them.
    """
    kept: list[Attempt] = []
    for attempt in attempts:
        if attempt.is_lost(table):
            attempt.discard()
        else:
            kept.append(attempt)
    return tuple(kept)


def _discard_beaten(attempts: Sequence[Attempt], landed: Attempt) -> None:
    """Delete the manifests of earlier attempts whose sequence number is taken by an attempt that has landed."""
    for attempt in attempts:
        if attempt.is_beaten_by(landed.snapshot_id, landed.sequence):
            attempt.discard()
