"""Find records that a target will refuse: too large, or with refused timestamps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from archiver.archive.offset_order import offsets_of
from archiver.archive.open_file import OpenFile
from archiver.archive.plan import select_files
from archiver.archive.table_files import TableFile
from archiver.archive.topic_archive import TopicArchive
from archiver.codecs import Codec
from archiver.errors import ConfigError, ObjectMissing
from archiver.kafka.transactional_writer import ProducerIdentity
from archiver.records.matching import SelectedRecords
from archiver.records.selection import Selection
from archiver.republish.batches import ProducedRecords
from archiver.storage.row_columns import NO_TIMESTAMP, record_timestamps
from archiver.storage.segment import RowRange
from archiver.wire.record_sizes import sizes_of
from schema_mapping import names

MAX_BYTES: Final = "max.message.bytes"
BEFORE_MAX: Final = "message.timestamp.before.max.ms"
AFTER_MAX: Final = "message.timestamp.after.max.ms"
_OLDER_LIMIT: Final = "message.timestamp.difference.max.ms"
"""The setting of brokers before 3.6."""
FOREVER: Final = 2**63 - 1
BATCH_OVERHEAD: Final = 512
DEFAULT_BYTES: Final = 1_048_588
"""Kafka's default of `max.message.bytes`."""
_MOST_BYTES: Final = 2**31 - 1
_READERS: Final = 8
_ANYBODY: Final = ProducerIdentity(producer_id=0, epoch=0, base_sequence=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLimits:
    """Bytes of a compressed batch, and timestamps (ms)."""

    topic: str
    most_bytes: int
    lowest: int
    highest: int

    @classmethod
    def of(cls, topic: str, settings: Mapping[str, str], *, now_ms: int) -> Self:
        either_side = settings.get(_OLDER_LIMIT, FOREVER)
        before, after = (int(settings.get(name, either_side)) for name in (BEFORE_MAX, AFTER_MAX))
        most = int(settings.get(MAX_BYTES, DEFAULT_BYTES))
        return cls(topic=topic, most_bytes=most, lowest=now_ms - before, highest=min(now_ms + after, FOREVER))

    def refuses_times(self, times: Any) -> Any:
        """-1, no timestamp, is always accepted."""
        return ((times < self.lowest) | (times > self.highest)) & (times != NO_TIMESTAMP)


@dataclass(frozen=True, slots=True)
class _RefusedRecords:
    partition: int
    offset: int
    what: int


@dataclass(slots=True)
class RefusalCheck:
    archive: TopicArchive
    selection: Selection
    limits: TargetLimits
    codec: Codec
    _too_large: list[_RefusedRecords] = field(default_factory=list)
    _timed: _RefusedRecords | None = None
    _needed_bytes: int = 0

    def run(self, ranges: Iterable[RowRange]) -> None:
        """Raises ConfigError if the target refuses a selected record."""
        for file, selected, largest in files_of(self.archive, ranges):
            is_large = largest is None or largest + BATCH_OVERHEAD > self.limits.most_bytes
            if largest is not None:
                self._needed_bytes = max(self._needed_bytes, largest + BATCH_OVERHEAD)
            may_have_times = self._timed is None and self._may_refuse_times(file)
            if is_large or (may_have_times and self.selection.where is not None):
                self._look(selected, reads_sizes=is_large)
            elif may_have_times:
                self._look_at_times(file, selected)
        self._report()

    def _may_refuse_times(self, file: TableFile) -> bool:
        if file.latest == NO_TIMESTAMP:
            return False
        return self.limits.lowest > -FOREVER // 2 or file.latest is None or file.latest > self.limits.highest

    def _look(self, selected: RowRange, *, reads_sizes: bool) -> None:
        stream = SelectedRecords.of(self.archive, self.selection).read(selected)
        with closing(stream) as batches:
            for records, _ in batches:
                self._note_times(selected.partition, records.column("timestamp").to_numpy(), offsets_of(records))
                if reads_sizes:
                    self._note_sizes(selected.partition, records)

    def _look_at_times(self, file: TableFile, selected: RowRange) -> None:
        try:
            opened = OpenFile.open(self.archive.snapshot.storage, file)
        except ObjectMissing:  # it was rewritten since: `records` finds the rows
            self._look(selected, reads_sizes=False)
            return
        with closing(opened):
            for block in opened.reader.blocks(selected):
                for kafka in opened.kafka(block, selected):
                    offsets = kafka.field(names.OFFSET).to_numpy()
                    self._note_times(selected.partition, record_timestamps(kafka).to_numpy(), offsets)

    def _note_times(self, partition: int, times: Any, offsets: Any) -> None:
        refused = np.flatnonzero(self.limits.refuses_times(times))
        if self._timed is None and refused.size:
            self._timed = _RefusedRecords(partition, int(offsets[refused[0]]), int(times[refused[0]]))

    def _note_sizes(self, partition: int, records: pa.RecordBatch) -> None:
        sizes = sizes_of(records)
        for row in np.flatnonzero(sizes + BATCH_OVERHEAD > self.limits.most_bytes).tolist():
            alone = ProducedRecords(records.slice(row, 1), self.codec)
            size = len(alone.encode(_ANYBODY))
            self._needed_bytes = max(self._needed_bytes, int(sizes[row]) + BATCH_OVERHEAD)
            if size > self.limits.most_bytes:
                self._too_large.append(_RefusedRecords(partition, int(alone.offsets[0]), size))

    def _report(self) -> None:
        limits, reasons = self.limits, list[str]()
        context: dict[str, int] = {}
        if self._too_large:
            first = self._too_large[0]
            reasons.append(
                f"it takes batches of at most {limits.most_bytes:,} bytes, and {_count(len(self._too_large))} larger, "
                f"the first with {first.what:,} bytes: set its {MAX_BYTES} to {min(self._needed_bytes, _MOST_BYTES)}"
            )
            context |= {"large_partition": first.partition, "large_offset": first.offset}
        if self._timed is not None:
            key, side = (BEFORE_MAX, "old") if self._timed.what < limits.lowest else (AFTER_MAX, "far in the future")
            reasons.append(f"it refuses timestamps that are too {side}: set its {key} to {FOREVER}")
            context |= {
                "partition": self._timed.partition,
                "offset": self._timed.offset,
                "timestamp_ms": self._timed.what,
            }
        if reasons:
            raise ConfigError(
                f"the target would refuse records, and nothing was sent: {'; '.join(reasons)}",
                topic=limits.topic,
                **context,
            )


def needed_settings(archive: TopicArchive, selection: Selection) -> dict[str, str]:
    """For a topic that accepts each selected record, however compressed."""
    largest = 0
    for _, selected, stated in files_of(archive, selection.resolve(archive)):
        largest = max(largest, _largest_in(archive, selected) if stated is None else stated)
    needed = min(largest + BATCH_OVERHEAD, _MOST_BYTES)
    return {MAX_BYTES: str(needed)} if needed > DEFAULT_BYTES else {}


def _largest_in(archive: TopicArchive, selected: RowRange) -> int:
    with closing(archive.records(selected.partition, selected.start_offset, selected.end_offset)) as batches:
        return max((int(sizes_of(batch).max()) for batch in batches), default=0)


def files_of(archive: TopicArchive, ranges: Iterable[RowRange]) -> Iterator[tuple[TableFile, RowRange, int | None]]:
    """Each file with its part of the range and its largest record (None: unknown)."""
    snapshot = archive.snapshot

    def stated(file: TableFile) -> int | None:
        form = snapshot.storage.formats.named(file.format, file.path)
        try:
            with form.open(snapshot.storage.objects, file.path) as reader:
                return reader.metadata.largest_record
        except ObjectMissing:
            return None

    with ThreadPoolExecutor(_READERS, thread_name_prefix="footers") as pool:
        for selected in ranges:
            files = list(select_files(snapshot.files, selected))
            for file, largest in zip(files, pool.map(stated, files), strict=True):
                yield file, _part(selected, file), largest


def _part(selected: RowRange, file: TableFile) -> RowRange:
    if file.offsets is None:
        return selected
    start, end = max(selected.start_offset, file.offsets.low), min(selected.end_offset, file.offsets.high + 1)
    return replace(selected, start_offset=start, end_offset=end)


def _count(records: int) -> str:
    return "one record is" if records == 1 else f"{records:,} records are"
