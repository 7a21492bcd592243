"""Write and commit the rows of the log that the table lacks.

Each step can be repeated: rows stay in the log until the table has them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from archiver.errors import BadLog, IntakeError
from archiver.fault_points import IntakePoint, pass_point
from archiver.files.records import Batches, Records
from archiver.intake.batches import LoggedBatch, LoggedRecords, RowsVersion
from archiver.intake.state import IntakeState
from archiver.intake.topic_log import TopicLog
from catalog.model import TranslatedRange

JOINED_BYTES: Final = 32 << 20
"""Rows of this size are passed on together, over all partitions."""


class IntakeArchive(Protocol):
    """Methods may raise subclasses of ContextError."""

    def begin(self) -> Mapping[int, int]:
        """Settle an earlier turn; return the next offsets in the table or staged."""

    def write(self, records: Iterable[LoggedRecords]) -> Sequence[TranslatedRange]: ...

    def keep(self, state: IntakeState, ends: Mapping[int, int]) -> None:
        """Keep the state of the files that are staged next. The table or staged files have `ends`."""

    def stage(self, ranges: Sequence[TranslatedRange]) -> None: ...

    def commit(self) -> Mapping[int, int]:
        """Return the next offsets in the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTurn:
    rows: int
    files: int
    file_bytes: int
    write_seconds: float = 0.0


def write_turn(log: TopicLog, archive: IntakeArchive, *, topic: str) -> WrittenTurn:
    """Raises BadLog if the log lacks rows, else ContextError, after which the next turn continues."""
    pass_point(IntakePoint.TURN_BEGUN)
    state = log.durable_state()  # first: what is acknowledged from now on waits for the next turn
    next_offsets = state.next_offsets
    ends = archive.begin()
    check_continuity(next_offsets, ends, topic=topic)
    started = time.perf_counter()
    ranges = archive.write(rows_to_write(log.batches(ends, before=state.sequence), ends, topic=topic))
    write_seconds = time.perf_counter() - started
    pass_point(IntakePoint.FILES_UPLOADED)
    archive.keep(state, ends)
    if ranges:
        archive.stage(ranges)
        pass_point(IntakePoint.FILES_STAGED)
    committed = archive.commit()
    pass_point(IntakePoint.FILES_COMMITTED)
    log.release(committed)
    pass_point(IntakePoint.WAL_REMOVED)
    _check_reached(next_offsets, committed, ends, topic=topic)
    files = [file for range_ in ranges for file in range_.files]
    return WrittenTurn(
        rows=sum(file.rows for file in files),
        files=len(files),
        file_bytes=sum(file.size_bytes for file in files),
        write_seconds=write_seconds,
    )


def check_continuity(next_offsets: Mapping[int, int], ends: Mapping[int, int], *, topic: str) -> None:
    """Raise BadLog if the table has rows that the log lacks."""
    for partition, end in ends.items():
        if end > next_offsets.get(partition, 0):
            raise BadLog(
                "the table has rows that the write-ahead log doesn't know: its folder is an older copy, or another"
                " log's. Start the server with the log that was written last",
                topic=topic,
                partition=partition,
                log_until=next_offsets.get(partition, 0),
                table_until=end,
            )


def check_reported(next_offsets: Mapping[int, int], reported: Mapping[int, int], *, topic: str, log: str) -> None:
    """Raise BadLog if the log's server reported more rows."""
    for partition, end in reported.items():
        if end > next_offsets.get(partition, 0):
            raise BadLog(
                "rows were acknowledged that the write-ahead log doesn't know: its folder is an older copy. Start the"
                " server with the newest folder. If that can't be restored, `archiver abandon TOPIC --dry-run` prints"
                " which rows only it had",
                topic=topic,
                partition=partition,
                log_until=next_offsets.get(partition, 0),
                acknowledged_until=end,
                last_log=log,
            )


def check_covered(next_offsets: Mapping[int, int], ends: Mapping[int, int], *, topic: str, last: str) -> None:
    """Raise BadLog if the table lacks rows of a replaced log."""
    for partition, end in next_offsets.items():
        if end > ends.get(partition, 0):
            raise BadLog(
                "the folder has acknowledged rows that the table lacks, but the registry names another log, which was"
                " drained: the registry is an older copy, or another one. Nothing was removed. Start the server with"
                " the registry that this log belongs to",
                topic=topic,
                partition=partition,
                log_until=end,
                table_until=ends.get(partition, 0),
                last_log=last,
            )


def _check_reached(
    next_offsets: Mapping[int, int], committed: Mapping[int, int], ends: Mapping[int, int], *, topic: str
) -> None:
    """Raises IntakeError if a file is gone or was rejected, or the log lacks rows."""
    for partition, end in next_offsets.items():
        reached = max(committed.get(partition, 0), ends.get(partition, 0))
        if reached < end:
            raise IntakeError(
                "acknowledged rows didn't get into the table; they stay in the log, and are written again",
                topic=topic,
                partition=partition,
                offset=reached,
                log_until=end,
            )


def rows_to_write(
    batches: Iterable[tuple[LoggedBatch, memoryview]],
    ends: Mapping[int, int],
    *,
    topic: str,
    until: Mapping[int, int] | None = None,
) -> Iterator[LoggedRecords]:
    """Yield the rows from `ends` to `until`, several batches together. Raises BadLog for missing rows."""
    reached = dict(ends)
    waiting: dict[int, list[Records]] = defaultdict(list)
    size = 0
    version: RowsVersion | None = None
    for batch, body in batches:
        if batch.schema_version != version:
            yield from _joined(waiting, version)
            waiting.clear()
            version = batch.schema_version
        for partition, records in batch.records(body).items():
            if records.end_offset <= reached.get(partition, 0):
                continue
            if until is not None and records.start_offset >= until.get(partition, 0):
                continue
            if records.start_offset != reached.get(partition, 0):
                raise BadLog(
                    "the write-ahead log lacks acknowledged rows: restore its segments",
                    topic=topic,
                    partition=partition,
                    offset=reached.get(partition, 0),
                    next_in_log=records.start_offset,
                )
            reached[partition] = records.end_offset
            waiting[partition].append(records)
        size += len(body)
        if size >= JOINED_BYTES:
            yield from _joined(waiting, version)
            waiting.clear()
            size = 0
    yield from _joined(waiting, version)


def _joined(waiting: Mapping[int, Sequence[Records]], version: RowsVersion | None) -> Iterator[LoggedRecords]:
    for partition, records in waiting.items():
        yield LoggedRecords(partition, join(records), version)


def join(parts: Sequence[Records]) -> Records:
    if len(parts) == 1:
        return parts[0]
    batches = [part.batches for part in parts]
    return Records(
        start_offset=parts[0].start_offset,
        end_offset=parts[-1].end_offset,
        content=pa.concat_batches([part.content for part in parts]),
        batches=Batches(
            first_offset=np.concatenate([batch.first_offset for batch in batches]),
            last_offset=np.concatenate([batch.last_offset for batch in batches]),
            rows=np.concatenate([batch.rows for batch in batches]),
            times=np.concatenate([batch.times for batch in batches]),
        ),
        log=pa.concat_batches([part.log for part in parts]),
    )
