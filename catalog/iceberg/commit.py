"""Exactly-once commits of ranges (docs/concepts.md, step 4; ADR 0064).

After an unclear answer the table decides, by commit id, then by offsets. Loads older than the last attempt decide
nothing. Manifests are deleted only if their snapshot provably never lands.
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
from catalog.iceberg.answer_text import answer_text
from catalog.iceberg.append import Attempt, prepare
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import check_lineage
from catalog.iceberg.offsets import advance, in_order, spans
from catalog.iceberg.rest import FAILURES, REFUSALS
from catalog.iceberg.schema_change import SchemaChange
from catalog.model import PartitionOffset, TranslatedRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    commit_id: str
    snapshot_id: int
    offsets: Mapping[int, PartitionOffset]


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedPartition:
    partition: int
    expected: int
    found: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsMoved:
    """Nothing was committed. Settle the ranges, then plan again."""

    partitions: tuple[MovedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """Ranges and files stay staged: settle them later."""

    commit_id: str
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedCommit:
    """`table` is the commit's base, or with `is_found` a later table that has it."""

    snapshot_id: int
    table: ArchiveTable
    is_found: bool


CommitOutcome: TypeAlias = Committed | OffsetsMoved | Unresolved
Obstacle = TypeVar("Obstacle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses double, randomly shortened by up to half, but not below the catalog's `asked_seconds`.

    No further attempt if these exceed `longest_asked_seconds`.
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

    `send` raises pyiceberg's exceptions. A final refusal is raised if the table lacks the commit; settle the ranges
    then. Raises ValueError for invalid ranges.
    """
    expected = spans(ranges)
    if not expected:
        raise ValueError("a commit needs at least one range")

    def moved(table: ArchiveTable) -> OffsetsMoved | None:
        check_lineage(table)
        partitions = _moved(table, expected)
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
    """Commit one snapshot, once. Raises like `commit`.

    `obstacle` prevents the commit. It must hold for every table that has the commit: the snapshot may have expired.
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
    try:
        send(attempt)
    except FAILURES as error:
        return error
    return None


def _is_final(failure: Exception, *, has_moved: bool) -> bool:
    """Whether a retry is useless; the table lacks the commit.

    Older servers answer 400 if another branch took the sequence number: then a retry helps.
    """
    return isinstance(failure, REFUSALS) and not (isinstance(failure, exceptions.BadRequestError) and has_moved)


def _said(failure: Exception | None) -> str:
    return "" if failure is None else f"{type(failure).__name__}: {answer_text(str(failure))}"


def find_commit(table: ArchiveTable, commit_id: str) -> int | None:
    """None also if the snapshot has expired."""
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
    """Return attempts that may still land. `archiver orphans` deletes their manifests later."""
    kept: list[Attempt] = []
    for attempt in attempts:
        if attempt.is_lost(table):
            attempt.discard()
        else:
            kept.append(attempt)
    return tuple(kept)


def _discard_beaten(attempts: Sequence[Attempt], landed: Attempt) -> None:
    for attempt in attempts:
        if attempt.is_beaten_by(landed.snapshot_id, landed.sequence):
            attempt.discard()
