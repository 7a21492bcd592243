"""Copy the records of an archive to a Kafka topic, each exactly once over all runs.

A run first fences earlier runs and aborts their open transactions.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from typing import Final

from archiver.codecs import Codec
from archiver.errors import ConfigError, RecordsRetired
from archiver.kafka.broker import BrokerClient
from archiver.kafka.transactional_writer import TransactionalWriter
from archiver.observer import Observer, ignore
from archiver.records.matching import SelectedRecords
from archiver.republish.progress_log import Begun, Course, PartitionProgress, ProgressLog
from archiver.republish.rate import UNLIMITED, Pace, Rate
from archiver.republish.report import (
    PartitionTransfer,
    TransferEvent,
    TransferInterrupted,
    TransferMoved,
    TransferReport,
    TransferStarted,
)
from archiver.republish.streams import PieceLimits, StreamPiece, pieces_of
from archiver.republish.target import Target, check_same
from archiver.republish.transaction import TransferTransaction
from archiver.storage.segment import RowRange
from schema_mapping.errors import ContextError

TRANSACTIONAL_ID: Final = "archiver-replay."
COMMIT_SECONDS: Final = 1.0
COMMIT_BYTES: Final = 64 << 20
AT_ONCE: Final = 4
"""So many partitions are read and written at a time."""
_MOST_ROWS: Final = 100_000
_RETRIES: Final = 6
_FIRST_PAUSE: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferSettings:
    """`appends` allows a target with other records."""

    name: str
    progress_topic: str
    rate: Rate = UNLIMITED
    codec: Codec = Codec.ZSTD
    appends: bool = False


class Transfer:
    """Raises the errors of the archive and the brokers; commits stay."""

    def __init__(
        self,
        selected: SelectedRecords,
        course: Course,
        *,
        brokers: BrokerClient,
        target: Target,
        settings: TransferSettings,
        observer: Observer[TransferEvent] = ignore,
    ) -> None:
        self.log: Final = ProgressLog(brokers, settings.progress_topic, settings.name)
        self._selected = selected
        self._archive = selected.archive
        self._selection = selected.selection
        self._course = course
        self._brokers = brokers
        self._target = target
        self._settings = settings
        self._observer = observer
        self._writer = TransactionalWriter(brokers, f"{TRANSACTIONAL_ID}{settings.name}")
        self._pace = Pace(settings.rate)
        self._ends: dict[int, int] = {}
        self._moved: dict[int, int] = {}
        self._size_bytes = 0
        self._transactions = 0
        self._started_at = time.monotonic()

    def check(self) -> None:
        """Raises ConfigError. Nothing is written or fenced."""
        progress, is_decided = self.log.peek()
        self._check_course(progress)
        if is_decided:
            self._check_empty(progress)

    def remaining(self) -> Iterator[RowRange]:
        progress, _ = self.log.peek()
        for selected in self._selection.resolve(self._archive):
            reached = progress.get(selected.partition)
            start = selected.start_offset if reached is None else max(selected.start_offset, reached.next_offset)
            if start < selected.end_offset:
                yield replace(selected, start_offset=start)

    def run(self) -> TransferReport:
        failures, committed = 0, 0
        resumed: bool | None = None
        while True:
            try:
                progress = self._open()
                resumed = any(partition.sequence for partition in progress.values()) if resumed is None else resumed
                self._move(progress, resumed=resumed)
                return self._report(progress, resumed=resumed)
            except ContextError as error:
                failures = failures + 1 if self._transactions == committed else 1
                committed = self._transactions
                if not error.retryable or failures > _RETRIES:
                    raise
                pause = _FIRST_PAUSE * 2 ** (failures - 1)
                self._observer(TransferInterrupted(error=error, pause_seconds=pause))
                time.sleep(pause)

    def _open(self) -> dict[int, PartitionProgress]:
        check_same(self._brokers, self._target)
        self._writer.open()
        progress = self.log.read()
        self._check_course(progress)
        self._check_empty(progress)
        return progress

    def _check_course(self, progress: dict[int, PartitionProgress]) -> None:
        asked = self._course
        for partition in progress.values():
            begun = partition.begun.course
            for name, option in (("start", "--from"), ("where", "--where")):
                if getattr(begun, name) != getattr(asked, name):
                    raise ConfigError(
                        f"the transfer was begun with another {option}: give the same, or another --transfer with a "
                        "topic of its own",
                        transfer=self._settings.name,
                        begun_with=getattr(begun, name) or "nothing",
                        found=getattr(asked, name) or "nothing",
                    )
            if begun != asked:
                differing = [
                    name for name in Course.__dataclass_fields__ if getattr(begun, name) != getattr(asked, name)
                ]
                raise ConfigError(
                    "a transfer of this name was begun from another archive or into another topic, or one of them was "
                    "deleted and made again since: give another --transfer",
                    transfer=self._settings.name,
                    **{f"begun_with_{name}": getattr(begun, name) for name in differing},
                    **{f"found_{name}": getattr(asked, name) for name in differing},
                )

    def _check_empty(self, progress: dict[int, PartitionProgress]) -> None:
        fresh = [partition for partition in self._selection.chosen(self._archive) if partition not in progress]
        if not fresh or self._settings.appends:
            return
        ends = self._brokers.list_offsets(self._target.name, fresh, "high_watermark")
        if filled := {partition: end for partition, end in ends.items() if end}:
            raise ConfigError(
                "the target holds records already, and this transfer hasn't written them: give an empty topic, or "
                "--append to write behind them",
                topic=self._target.name,
                transfer=self._settings.name,
                records_up_to=filled,
            )

    def _move(self, progress: dict[int, PartitionProgress], *, resumed: bool) -> None:
        selection, archive = self._selection, self._archive
        chosen = selection.chosen(archive)
        transaction = TransferTransaction(self._writer, self.log, self._target.name, progress)
        transaction.begin(
            [
                Begun(
                    partition=partition,
                    offset=max(selection.start_offset(archive, partition), archive.first_offset(partition)),
                    course=self._course,
                )
                for partition in chosen
                if partition not in progress
            ]
        )
        self._ends = {partition: selection.end_offset(archive, partition) for partition in chosen}
        self._observer(
            TransferStarted(
                transfer=self._settings.name,
                topic=self._course.topic,
                target=self._target.name,
                behind=self._behind(progress),
                resumed=resumed,
            )
        )
        try:
            self._send(transaction)
        except BaseException as error:
            if not (isinstance(error, ContextError) and error.retryable):  # else the next attempt ends it
                with suppress(ContextError):  # readers needn't wait until the broker gives the transaction up
                    self._writer.abort()
            raise

    def _send(self, transaction: TransferTransaction) -> None:
        with ExitStack() as stack:
            waiting = deque(self._streams(transaction.progress))
            active: dict[int, Generator[StreamPiece, None, None]] = {}
            while waiting or active:
                while waiting and len(active) < AT_ONCE:
                    partition, stream = waiting.popleft()
                    active[partition] = stack.enter_context(closing(stream))
                self._round(transaction, active)
            if not transaction.is_empty:
                self._commit(transaction)

    def _streams(
        self, progress: dict[int, PartitionProgress]
    ) -> Iterator[tuple[int, Generator[StreamPiece, None, None]]]:
        rate = self._settings.rate
        limits = PieceLimits(
            most_bytes=min(self._target.most_batch_bytes, rate.most_bytes or self._target.most_batch_bytes),
            most_rows=min(_MOST_ROWS, rate.most_rows or _MOST_ROWS),
            codec=self._settings.codec,
        )
        for partition, end in self._ends.items():
            reached = progress[partition]
            first = self._archive.first_offset(partition) if reached.is_untouched else 0
            start = max(reached.next_offset, first)  # what was retired by now was never part of the transfer
            if start < end:
                yield partition, self._stream(RowRange(partition=partition, start_offset=start, end_offset=end), limits)

    def _stream(self, whole: RowRange, limits: PieceLimits) -> Generator[StreamPiece, None, None]:
        narrowed = self._selection.narrowed(whole)
        if narrowed is not None:
            try:
                yield from pieces_of(self._selected, narrowed, limits)
            except RecordsRetired as error:
                raise RecordsRetired(
                    "records were retired before they were moved, and this transfer stops there: what it has committed"
                    " stays. Records from first_offset on can be moved by another transfer (`--partition`, `--from`,"
                    " `--transfer` and `--append`); those in between are no longer in the archive: if they are needed,"
                    " take them from Kafka, or from a copy of the archive",
                    transfer=self._settings.name,
                    **error.context,
                ) from error
        yield StreamPiece(None, whole.end_offset)

    def _round(self, transaction: TransferTransaction, active: dict[int, Generator[StreamPiece, None, None]]) -> None:
        ready: dict[int, StreamPiece] = {}
        for partition, stream in list(active.items()):
            piece = next(stream, None)
            if piece is None:
                del active[partition]
            elif piece.records is None:
                transaction.reach(partition, piece.next_offset)
            else:
                ready[partition] = piece
        if ready:
            size = sum(part.size_bytes for part in ready.values())
            records = {part: piece.records for part, piece in ready.items() if piece.records is not None}
            transaction.write(records, size)
            pause = self._pace.pause_after(records=sum(record.rows for record in records.values()), size=size)
            if pause + transaction.age > COMMIT_SECONDS:
                self._commit(transaction)
            time.sleep(pause)
        if transaction.size_bytes >= COMMIT_BYTES or transaction.age >= COMMIT_SECONDS:
            self._commit(transaction)

    def _commit(self, transaction: TransferTransaction) -> None:
        size = transaction.size_bytes
        for partition, runs in transaction.commit().items():
            self._moved[partition] = self._moved.get(partition, 0) + runs.records
        self._size_bytes += size
        self._transactions += 1
        self._observer(
            TransferMoved(
                records=sum(self._moved.values()),
                size_bytes=self._size_bytes,
                behind=self._behind(transaction.progress),
                seconds=time.monotonic() - self._started_at,
            )
        )
        check_same(self._brokers, self._target)

    def _behind(self, progress: dict[int, PartitionProgress]) -> int:
        return sum(max(0, end - progress[partition].next_offset) for partition, end in self._ends.items())

    def _report(self, progress: dict[int, PartitionProgress], *, resumed: bool) -> TransferReport:
        return TransferReport(
            transfer=self._settings.name,
            topic=self._course.topic,
            target=self._target.name,
            records=sum(self._moved.values()),
            size_bytes=self._size_bytes,
            transactions=self._transactions,
            seconds=time.monotonic() - self._started_at,
            partitions=tuple(
                PartitionTransfer(
                    partition=partition,
                    start_offset=reached.begun.offset,
                    next_offset=reached.next_offset,
                    records=self._moved.get(partition, 0),
                )
                for partition, reached in sorted(progress.items())
            ),
            resumed=resumed,
        )
