"""A partition's log: epochs, truncation, markers, compaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from archiver.archive.records import ASSEMBLED
from archiver.kafka import EpochEnd
from archiver.kafka.broker import At
from archiver.wire import DecodedBatches, decode_batches
from tests.support.kafka.record_batches import Record, build

TIME = 1_700_000_000_000


@dataclass(frozen=True)
class Batch:
    """Numbered records, or hidden ones: a marker, or aborted."""

    base: int
    epoch: int
    numbers: tuple[int, ...] = ()
    hidden: int = 0

    @property
    def end(self) -> int:
        return self.base + (len(self.numbers) or self.hidden)

    @property
    def bytes(self) -> bytes:
        if self.numbers:
            records = [Record(timestamp=TIME, value=b"%d" % number) for number in self.numbers]
            return build(records, base_offset=self.base, leader_epoch=self.epoch)
        changes = {"last_delta": self.hidden - 1, "attributes": 0b110000}
        return build([Record()], base_offset=self.base, leader_epoch=self.epoch, **changes)


@dataclass
class History:
    """`began` maps epochs to starts."""

    batches: list[Batch] = field(default_factory=list)
    began: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    end: int = 0
    epoch: int = 0
    numbers: int = 0
    compacted: set[int] = field(default_factory=set)
    written: dict[int, int] = field(default_factory=dict)
    policy: bool | None = True

    def append(self, *, records: int = 0, hidden: int = 0, epoch: int | None = None) -> None:
        of = self.epoch if epoch is None else epoch
        self.numbers += records
        numbers = tuple(range(self.numbers - records, self.numbers))
        self.batches.append(Batch(self.end, of, numbers, hidden))
        self.end = self.batches[-1].end
        self.written[of] = max(self.written.get(of, 0), self.end)

    def elect(self) -> None:
        self.epoch += 1
        self.began = [start for start in self.began if start[1] < self.end] + [(self.epoch, self.end)]

    def cut(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.end <= offset]
        self.end = self.batches[-1].end if self.batches else 0
        self.began = [start for start in self.began if start[1] < self.end] or [(0, 0)]
        self.elect()

    def wake(self, epoch: int, records: int) -> None:
        """Elect a former leader that continued its epoch."""
        after = [start for number, start in self.began if number > epoch]
        if after and self.written.get(epoch) == after[0]:  # it has all that was written in its epoch
            self.batches = [batch for batch in self.batches if batch.end <= after[0]]
            self.end = after[0]
            self.began = [entry for entry in self.began if entry[0] <= epoch]
            self.append(records=records, epoch=epoch)
        self.elect()

    def compact(self, place: int) -> None:
        if place < len(self.batches) - 1:
            self.compacted |= set(self.batches.pop(place).numbers)

    def forget(self) -> None:
        seen: dict[int, int] = {}
        for batch in self.batches:
            seen.setdefault(batch.epoch, batch.base)
        self.began = sorted(seen.items()) or [(0, 0)]
        self.elect()

    def records(self) -> dict[int, tuple[int, int]]:
        return {
            batch.base + index: (number, batch.epoch)
            for batch in self.batches
            for index, number in enumerate(batch.numbers)
        }

    def end_of_epoch(self, topic: str, epochs: Mapping[int, int]) -> dict[int, EpochEnd]:
        del topic
        return {partition: end for partition, epoch in epochs.items() if (end := self.end_of(epoch)) is not None}

    def end_of(self, epoch: int) -> EpochEnd | None:
        if epoch == self.began[-1][0]:
            return EpochEnd(leader_epoch=epoch, end_offset=self.end)
        later = [start for number, start in self.began if number > epoch]
        if not later:
            return None
        floor = max((number for number, _ in self.began if number <= epoch), default=epoch)
        return EpochEnd(leader_epoch=floor, end_offset=later[0])

    def epoch_before(self, topic: str, partition: int, offset: int, *, since: int) -> EpochEnd | None:
        del topic, partition
        answers = (self.end_of(epoch) for epoch in range(since, self.epoch + 1))
        return next((answer for answer in answers if answer is not None and answer.end_offset >= offset), None)

    def current_epoch(self, topic: str, partition: int) -> int:
        del topic, partition
        return self.epoch

    def list_offsets(self, topic: str, partitions: Iterable[int], at: At) -> dict[int, int]:
        del topic
        return dict.fromkeys(partitions, 0 if at == "earliest" else self.end)

    def is_compacted(self, topic: str) -> bool | None:
        del topic
        return self.policy

    def read(self, partition: int, start_offset: int, end_offset: int) -> Iterator[DecodedBatches]:
        del partition
        if start_offset < end_offset:
            data = b"".join(batch.bytes for batch in self.batches if batch.end > start_offset)
            batches = decode_batches(data, start_offset=start_offset, end_offset=end_offset, cut_head=True)
            yield replace(batches, next_offset=max(batches.next_offset, end_offset))


@dataclass
class ArchivedLog:
    records: dict[int, tuple[int, int]]
    reads: int = 0

    def read(self, partition: int, start_offset: int, end_offset: int) -> pa.RecordBatch:
        self.reads += 1
        rows = [
            {
                "partition": partition,
                "offset": offset,
                "timestamp_type": 0,
                "timestamp": TIME,
                "key": b"key",
                "value": b"%d" % number,
                "headers": [],
                "leader_epoch": epoch,
            }
            for offset, (number, epoch) in sorted(self.records.items())
            if start_offset <= offset < end_offset
        ]
        return pa.RecordBatch.from_pylist(rows, ASSEMBLED)
