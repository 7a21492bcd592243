"""A log in memory, and a task that writes real files of it."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq

from archiver.errors import BrokerUnavailable
from archiver.ingest.kafka_log.reading import KafkaReading
from archiver.ingest.plan.ranges import EpochsBefore, PlannedRange
from archiver.ingest.task.values import TopicTarget, TranslateTask
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import SegmentFormat, SegmentLayout
from archiver.wire import DecodedBatches, decode_batches
from catalog.model import DataFileInfo
from catalog.partitioning import PartitionColumn, Partitioning
from schema_mapping import RawMapping, RowMapping
from tests.support.kafka.record_batches import Record, build

DAY = 86_400_000
PLAN = 20_000 * DAY
RAW = RowMapping(key=RawMapping(raw_id=100), value=RawMapping(raw_id=101), schema_version=3)


def batch(base: int, *records: Record, leader_epoch: int = 5) -> bytes:
    return build(records, base_offset=base, leader_epoch=leader_epoch, builder="aiokafka")


BY_DAY = Partitioning((PartitionColumn("ingest_day", "day", 13),))


@dataclass(frozen=True, kw_only=True)
class LogInMemory:
    log: Sequence[bytes]
    cuts: Sequence[int] = ()
    fails_after: int | None = None

    def read(
        self, planned: PlannedRange, *, plan_time_ms: int, budget_seconds: float, shared: object = None
    ) -> KafkaReading:
        return KafkaReading(self.batches(planned), planned, plan_time_ms=plan_time_ms, budget_seconds=budget_seconds)

    @classmethod
    def sharing(cls, sources: Iterable[LogInMemory]) -> AbstractContextManager[None]:
        return nullcontext()

    def batches(self, planned: PlannedRange) -> Generator[DecodedBatches]:
        edges = [0, *sorted({min(cut, len(self.log)) for cut in self.cuts}), len(self.log)]
        position = planned.start_offset
        for number, (first, end) in enumerate(pairwise(edges)):
            if number == self.fails_after:
                raise BrokerUnavailable("no broker answers", topic="orders")
            decoded = decode_batches(
                b"".join(self.log[first:end]),
                start_offset=position,
                end_offset=planned.end_offset,
                cut_head=planned.owns_head and number == 0,
            )
            position = decoded.next_offset
            yield decoded


@dataclass(frozen=True, kw_only=True)
class Bench:
    folder: Path
    source: LogInMemory
    row: RowMapping = RAW
    format: SegmentFormat = field(default_factory=ParquetFormat)
    target_file_size: int = 256 << 20
    budget_seconds: float = 60.0
    on_parse_error: str = "pass_through"

    def task(self, start: int, end: int, *, owns_head: bool = True) -> TranslateTask:
        target = TopicTarget(
            topic="orders",
            topic_id="",
            cluster_id="c",
            row=self.row,
            layout=SegmentLayout(
                schema=self.row.arrow_schema, mapping=json.dumps(self.row.to_json()), schema_version=3
            ),
            on_parse_error=self.on_parse_error,  # type: ignore[arg-type]
            data_location=f"file://{self.folder}/table/data",
            partitioning=BY_DAY,
            target_file_size=self.target_file_size,
            objects=ObjectStore.of({}, attempts=1),
            format=self.format,
            source=self.source,
        )
        return TranslateTask(
            target=target,
            planned=PlannedRange(
                partition=4, start_offset=start, end_offset=end, owns_head=owns_head, epochs=EpochsBefore(archived=2)
            ),
            plan_time_ms=PLAN,
            budget_seconds=self.budget_seconds,
            spool=self.folder / "spool",
            spool_bytes=1 << 30,
        )

    def spooled(self) -> list[str]:
        spool = self.folder / "spool"
        return sorted(str(path.relative_to(spool)) for path in spool.rglob("*") if path.is_file())


def rows_of(file: DataFileInfo) -> list[dict[str, object]]:
    table = pq.ParquetFile(file.path.removeprefix("file://")).read()
    return [
        {
            "offset": row["kafka"]["offset"],
            "value": row["val"]["__raw__"],
            "ingest": row["kafka"]["ingest_timestamp"],
            "epoch": row["kafka"]["leader_epoch"],
        }
        for row in table.to_pylist()
    ]
