"""Which files of the current snapshot a replay has to look into, and what their bounds answer without looking.

Pruning is conservative: what a manifest doesn't say keeps a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive import file_columns
from archiver.archive.deletes import Mask
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.table_files import TableFile, TableFiles
from archiver.storage.row_columns import record_timestamps
from archiver.storage.segment import RowRange
from schema_mapping import names

UNKNOWN_LOW = -1
"""Where a file whose offsets the manifest doesn't tell stands: before all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSnapshot:
    """A topic's table at one snapshot: its files, and how far each partition was archived then."""

    snapshot_id: int | None
    files: TableFiles
    next_offsets: Mapping[int, int]
    storage: TopicStorage

    @property
    def partitions(self) -> tuple[int, ...]:
        """The partitions that have been archived, in ascending order."""
        return tuple(sorted(self.files.partitions | self.next_offsets.keys()))


def select(files: TableFiles, wanted: RowRange) -> Iterator[TableFile]:
    """Give the files that may hold rows of the range, by the least offset they can hold, each when it is asked for."""
    found = np.flatnonzero(_may_hold(files.columns, wanted))
    lows = pc.fill_null(files.columns[file_columns.LOW_OFFSET], UNKNOWN_LOW).to_numpy()[found]
    return files.pick(found[np.argsort(lows, kind="stable")])


def high_watermark(snapshot: TopicSnapshot, partition: int) -> int:
    """The offset after the last archived one: where a replay that waits for more goes on. 0 where there is nothing."""
    known = snapshot.next_offsets.get(partition)
    if known is not None:
        return known
    columns = snapshot.files.columns
    held = pc.filter(columns[file_columns.HIGH_OFFSET], pa.array(_may_hold(columns, RowRange(partition=partition))))
    highest = pc.max(held).as_py()
    return 0 if highest is None else int(highest) + 1


def low_watermark(snapshot: TopicSnapshot, partition: int) -> int:
    """The least offset that is archived; the high watermark where none is."""
    best = high_watermark(snapshot, partition)
    for file in select(snapshot.files, RowRange(partition=partition)):
        if _low(file) >= best:
            break
        found = _known_low(file)
        if found is None:
            found = _first_offset(snapshot.storage, file, RowRange(partition=partition, end_offset=best))
        best = best if found is None else min(best, found)
    return best


def first_offset_since(snapshot: TopicSnapshot, partition: int, timestamp: int) -> int | None:
    """The least offset whose timestamp (ms) is `timestamp` or later, as Kafka's ListOffsets; None where none is."""
    wanted = RowRange(partition=partition, min_timestamp=timestamp)
    best: int | None = None
    for file in select(snapshot.files, wanted):
        if _low(file) >= wanted.end_offset:
            break
        found = _first_offset(snapshot.storage, file, wanted)
        if found is not None:
            best = found
            wanted = replace(wanted, end_offset=found)
    return best


def _first_offset(storage: TopicStorage, file: TableFile, wanted: RowRange) -> int | None:
    opened = OpenFile.open(storage, file)
    try:
        least: int | None = None
        for block in sorted(opened.reader.blocks(wanted), key=lambda one: one.low_offset or 0):
            if least is not None and block.low_offset is not None and block.low_offset >= least:
                break
            for kafka in opened.kafka(block, wanted):
                offsets = kafka.field(names.OFFSET).to_numpy()
                if wanted.min_timestamp is not None:
                    late = pc.greater_equal(record_timestamps(kafka), wanted.min_timestamp)
                    offsets = offsets[late.to_numpy(zero_copy_only=False)]
                if len(offsets):
                    least = int(np.min(offsets)) if least is None else min(least, int(np.min(offsets)))
        return least
    finally:
        opened.close()


def _may_hold(files: pa.Table, wanted: RowRange) -> Mask:
    kept = _within(files, wanted.partition, wanted.partition, file_columns.LOW_PARTITION, file_columns.HIGH_PARTITION)
    kept &= _within(
        files, wanted.start_offset, wanted.end_offset - 1, file_columns.LOW_OFFSET, file_columns.HIGH_OFFSET
    )
    if wanted.min_timestamp is not None:
        kept &= _unless_false(pc.greater_equal(files[file_columns.LATEST], wanted.min_timestamp))
    return kept


def _within(files: pa.Table, first: int, last: int, low: str, high: str) -> Mask:
    """Where the bounds `low` and `high` don't rule out every value from `first` up to `last`."""
    return _unless_false(pc.and_(pc.greater_equal(files[high], first), pc.less_equal(files[low], last)))


def _unless_false(answer: pa.ChunkedArray) -> Mask:
    kept: Mask = pc.fill_null(answer, fill_value=True).to_numpy()
    return kept


def _low(file: TableFile) -> int:
    return file.offsets.low if file.offsets else UNKNOWN_LOW


def _known_low(file: TableFile) -> int | None:
    """The file's least offset, where its bounds speak of one partition and nothing was deleted."""
    if file.has_deletes or file.offsets is None or file.partitions is None:
        return None
    return file.offsets.low if file.partitions.low == file.partitions.high else None
