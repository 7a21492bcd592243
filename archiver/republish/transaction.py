"""One transaction of a transfer: records and their progress entries."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from archiver.errors import SourceError
from archiver.fault_points import TransferPoint, pass_point
from archiver.kafka.transactional_writer import TransactionalWriter
from archiver.republish.batches import ProducedRecords
from archiver.republish.offset_runs import Runs
from archiver.republish.progress_log import PARTITION, Begun, Entry, PartitionProgress, ProgressLog, entries_of

_WEIGHT: Final = 30_000


@dataclass(slots=True)
class _Waiting:
    next_offset: int
    runs: list[Runs] = field(default_factory=list)


class TransferTransaction:
    def __init__(
        self, writer: TransactionalWriter, log: ProgressLog, target: str, progress: dict[int, PartitionProgress]
    ) -> None:
        self.progress = progress
        self._writer = writer
        self._log = log
        self._target = target
        self._waiting: dict[int, _Waiting] = {}
        self._since: float | None = None
        self.size_bytes = 0
        self.records = 0

    @property
    def age(self) -> float:
        return 0.0 if self._since is None else time.monotonic() - self._since

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def begin(self, partitions: list[Begun]) -> None:
        """Commit the partitions before any of their records."""
        if partitions:
            self._writer.write(self._log.topic, {PARTITION: self._log.batch(partitions)})
            self._writer.commit()
            pass_point(TransferPoint.TRANSFER_BEGUN)
        for partition in partitions:
            self.progress[partition.partition] = PartitionProgress(
                begun=partition, next_offset=partition.offset, sequence=0
            )

    def write(self, pieces: Mapping[int, ProducedRecords], size_bytes: int) -> None:
        self._since = self._since or time.monotonic()
        try:
            bases = self._writer.write(self._target, pieces)
        except SourceError as error:
            ranges = {number: f"[{batch.offsets[0]}, {batch.offsets[-1] + 1})" for number, batch in pieces.items()}
            raise type(error)(error.message, **error.context, source_offsets=ranges) from error
        for partition, batch in pieces.items():
            self.reach(partition, int(batch.offsets[-1]) + 1)
            self._waiting[partition].runs.append(Runs.of(batch.offsets, bases[partition]))
            self.records += batch.rows
        self.size_bytes += size_bytes
        pass_point(TransferPoint.RECORDS_WRITTEN)

    def reach(self, partition: int, next_offset: int) -> None:
        if partition in self._waiting:
            self._waiting[partition].next_offset = next_offset
        elif next_offset > self.progress[partition].next_offset:
            self._waiting[partition] = _Waiting(next_offset)

    def commit(self) -> dict[int, Runs]:
        entries: list[Entry] = []
        moved: dict[int, Runs] = {}
        reached = dict(self.progress)
        for partition, waiting in sorted(self._waiting.items()):
            runs = moved[partition] = Runs.joined(waiting.runs)
            before = self.progress[partition]
            fresh = [*entries_of(partition, after=before.sequence, next_offset=waiting.next_offset, runs=runs)]
            entries += fresh
            reached[partition] = PartitionProgress(
                begun=before.begun, next_offset=waiting.next_offset, sequence=fresh[-1].sequence
            )
        for portion in _portions(entries):
            self._writer.write(self._log.topic, {PARTITION: self._log.batch(portion)})
        pass_point(TransferPoint.PROGRESS_WRITTEN)
        self._writer.commit()
        pass_point(TransferPoint.TRANSFER_COMMITTED)
        self.progress.update(reached)
        self._waiting, self._since, self.size_bytes, self.records = {}, None, 0, 0
        return moved


def _portions(entries: list[Entry]) -> list[list[Entry]]:
    portions = defaultdict[int, list[Entry]](list)
    weight = 0
    for entry in entries:
        portions[weight // _WEIGHT].append(entry)
        weight += 100 + (0 if isinstance(entry, Begun) else 3 * len(entry.runs))
    return [*portions.values()]
