"""Which files of the current snapshot a replay has to look into, and what their bounds answer without looking.

Pruning is conservative: what a manifest doesn't say keeps a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc

from archiver.rows.open_file import OpenFile, TopicStorage
from archiver.rows.table_files import TableFile
from archiver.storage.rows import record_timestamps
from archiver.storage.segment import RowRange
from schema_mapping import names


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSnapshot:
    """A topic's table at one snapshot: its files, and how far each partition was archived then."""

    snapshot_id: int | None
    files: tuple[TableFile, ...]
    next_offsets: Mapping[int, int]
    storage: TopicStorage

    @property
    def partitions(self) -> tuple[int, ...]:
        """The partitions that have been archived, in ascending order."""
        held = {file.partitions.low for file in self.files if file.partitions}
        held |= {file.partitions.high for file in self.files if file.partitions}
        return tuple(sorted(held | self.next_offsets.keys()))


def select(files: Iterable[TableFile], wanted: RowRange) -> tuple[TableFile, ...]:
    """Files that may hold rows of the range, by the least offset they can hold."""
    found = (file for file in files if _may_hold(file, wanted))
    return tuple(sorted(found, key=lambda file: (_low(file), file.path)))


def high_watermark(snapshot: TopicSnapshot, partition: int) -> int:
    """The offset after the last archived one: where a replay that waits for more goes on. 0 where there is nothing."""
    known = snapshot.next_offsets.get(partition)
    if known is not None:
        return known
    files = select(snapshot.files, RowRange(partition=partition))
    return max((file.offsets.high + 1 for file in files if file.offsets), default=0)


def low_watermark(snapshot: TopicSnapshot, partition: int) -> int:
    """The least offset that is archived; the high watermark where none is."""
    best = high_watermark(snapshot, partition)
    for file in select(snapshot.files, RowRange(partition=partition)):
        if _low(file) >= best:
            break
        found = _known_low(file) or _first_offset(
            snapshot.storage, file, RowRange(partition=partition, end_offset=best)
        )
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


def _may_hold(file: TableFile, wanted: RowRange) -> bool:
    if file.partitions and not file.partitions.low <= wanted.partition <= file.partitions.high:
        return False
    if file.offsets and (file.offsets.high < wanted.start_offset or file.offsets.low >= wanted.end_offset):
        return False
    return wanted.min_timestamp is None or file.latest is None or file.latest >= wanted.min_timestamp


def _low(file: TableFile) -> int:
    return file.offsets.low if file.offsets else -1


def _known_low(file: TableFile) -> int | None:
    """The file's least offset, where its bounds speak of one partition and nothing was deleted."""
    if file.has_deletes or file.offsets is None or file.partitions is None:
        return None
    return file.offsets.low if file.partitions.low == file.partitions.high else None
