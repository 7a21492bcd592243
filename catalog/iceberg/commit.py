"""Exactly-once commits: bring ranges into a table, or find out why that can't be done (docs/concepts.md, step 4).

An answer of the catalog is not trusted to be complete. After a time-out, a 5xx or a conflict the table itself decides:
first by the id of the commit, then by its offsets. A request is sent again only if the offsets show that the commit is
not in the table.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pydantic import ValidationError
from pyiceberg import exceptions

from catalog.errors import TableError
from catalog.iceberg import properties as keys
from catalog.iceberg.append import Attempt, prepare
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import check_lineage
from catalog.iceberg.offsets import advance, in_order, spans
from catalog.iceberg.rest import UNANSWERED
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
class Moved:
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


CommitOutcome: TypeAlias = Committed | Moved | Unresolved
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

    `load` gives the current table. `send` sends an attempt and raises pyiceberg's exceptions. TableError where the
    catalog refuses for a reason that another try won't change. Then nothing of this call is in the table, unless the
    answer to an earlier try was lost: the ranges stay staged, and settling them finds out.
    """
    wanted = spans(ranges)
    if not wanted:
        raise ValueError("a commit needs at least one range")

    def moved(table: ArchiveTable) -> Moved | None:
        check_lineage(table)
        partitions = _moved(table, wanted)
        return Moved(partitions=partitions) if partitions else None

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
            _discard(earlier for earlier in sent if earlier.snapshot_id != snapshot_id)
            return LandedCommit(snapshot_id=snapshot_id, table=table, is_found=True)
        if (met := obstacle(table)) is not None:
            return met
        # There is no obstacle, so no attempt has landed. An attempt on an older snapshot never will.
        _discard(earlier for earlier in sent if earlier.parent != table.snapshot_id)
        latest = attempt(table)
        sent = (*(earlier for earlier in sent if earlier.parent == table.snapshot_id), latest)
        failure = _try(send, latest)
        if failure is None:
            _discard(sent[:-1])
            return LandedCommit(snapshot_id=latest.snapshot_id, table=table, is_found=False)
        reason = failure
    return Unresolved(commit_id=commit_id, attempts=backoff.attempts, reason=reason)


_REFUSALS = (
    exceptions.BadRequestError,
    exceptions.UnauthorizedError,
    exceptions.ForbiddenError,
    exceptions.AuthorizationExpiredError,
    exceptions.OAuthError,
    NotImplementedError,
)
_NO_ANSWERS = (*UNANSWERED, exceptions.RESTError, exceptions.CommitFailedException, ValidationError)


def _try(send: Send, attempt: Attempt) -> str | None:
    """Send the attempt. None on success, else the failure. Raises refusals that another try won't change."""
    try:
        send(attempt)
    except _REFUSALS:
        raise
    except _NO_ANSWERS as error:
        return f"{type(error).__name__}: {error}"
    return None


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


def _discard(attempts: Iterable[Attempt]) -> None:
    for attempt in attempts:
        attempt.discard()
