"""Low and high watermark of an archived partition, the first offset since a time, and the latest time.

Bounds in manifests answer where they can. A file is read only where its bounds leave the answer open.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive import file_columns
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.plan import UNKNOWN_LOW, TopicSnapshot, may_hold, select_files
from archiver.archive.table_files import TableFile
from archiver.storage.row_columns import record_timestamps
from archiver.storage.segment import RowRange
from schema_mapping import names


def high_watermark(snapshot: TopicSnapshot, partition: int) -> int:
    """The offset after the last archived one; 0 where nothing is archived. A waiting replay goes on from there."""
    known = snapshot.next_offsets.get(partition)
    if known is not None:
        return known
    columns = snapshot.files.columns
    held = pc.filter(columns[file_columns.HIGH_OFFSET], pa.array(may_hold(columns, RowRange(partition=partition))))
    highest = pc.max(held).as_py()
    return 0 if highest is None else int(highest) + 1


def record_ends(snapshot: TopicSnapshot) -> dict[int, int]:
    """The offset of each partition from which on no file has a record, as far as bounds tell; they may be too high.

    Only partitions that have files are in it, and none where a file has no bounds.
    """
    low, high, offset = file_columns.LOW_PARTITION, file_columns.HIGH_PARTITION, file_columns.HIGH_OFFSET
    every = pc.ScalarAggregateOptions(skip_nulls=False)
    grouped = snapshot.files.columns.select([low, high, offset]).group_by([low, high])
    found: dict[int, int] = {}
    for each in grouped.aggregate([(offset, "max", every)]).to_pylist():
        last = each[f"{offset}_max"]
        if each[low] is None or last is None:
            return {}
        for partition in range(each[low], each[high] + 1):
            found[partition] = max(found.get(partition, 0), last + 1)
    return found


def low_watermark(snapshot: TopicSnapshot, partition: int) -> int:
    """The first archived offset that wasn't retired; the high watermark where there is none."""
    best, first = high_watermark(snapshot, partition), snapshot.first_offsets.get(partition, 0)
    for file in select_files(snapshot.files, RowRange(partition=partition, start_offset=first)):
        if _low(file) >= best:
            break
        found = _known_low(file)
        if found is None or found < first:
            wanted = RowRange(partition=partition, start_offset=first, end_offset=best)
            found = _first_offset(snapshot.storage, file, wanted)
        best = best if found is None else min(best, found)
    return best


def first_offset_since(snapshot: TopicSnapshot, partition: int, timestamp: int) -> int | None:
    """The lowest offset whose timestamp (ms) is `timestamp` or later, as in Kafka's ListOffsets; None for none."""
    wanted = RowRange(
        partition=partition, start_offset=snapshot.first_offsets.get(partition, 0), min_timestamp=timestamp
    )
    best: int | None = None
    for file in select_files(snapshot.files, wanted):
        if _low(file) >= wanted.end_offset:
            break
        found = _first_offset(snapshot.storage, file, wanted)
        if found is not None:
            best = found
            wanted = replace(wanted, end_offset=found)
    return best


def latest_time(snapshot: TopicSnapshot, partition: int) -> tuple[int, int] | None:
    """The highest timestamp (ms) of a record, and the first offset that has it; None if no record has a timestamp."""
    wanted = RowRange(partition=partition, min_timestamp=0)
    best: tuple[int, int] | None = None
    files = list(select_files(snapshot.files, wanted))
    for file in sorted(files, key=lambda one: (one.latest is not None, -(one.latest or 0))):
        if best is not None and file.latest is not None and file.latest < best[0]:
            break
        found = _latest_in(snapshot.storage, file, wanted)
        if found is not None and (best is None or (found[0], -found[1]) > (best[0], -best[1])):
            best = found
            wanted = replace(wanted, min_timestamp=found[0])
    return best


def _latest_in(storage: TopicStorage, file: TableFile, wanted: RowRange) -> tuple[int, int] | None:
    opened = OpenFile.open(storage, file)
    try:
        best: tuple[int, int] | None = None
        for block in opened.reader.blocks(wanted):
            for kafka in opened.kafka(block, wanted):
                times, offsets = record_timestamps(kafka).to_numpy(), kafka.field(names.OFFSET).to_numpy()
                if len(times) and times.max() >= (wanted.min_timestamp or 0):
                    found = int(times.max()), int(offsets[times == times.max()].min())
                    best = found if best is None or (found[0], -found[1]) > (best[0], -best[1]) else best
        return best
    finally:
        opened.close()


def _first_offset(storage: TopicStorage, file: TableFile, wanted: RowRange) -> int | None:
    """Read a file for its lowest offset in the range."""
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


def _low(file: TableFile) -> int:
    return file.offsets.low if file.offsets else UNKNOWN_LOW


def _known_low(file: TableFile) -> int | None:
    """The file's lowest offset, if its bounds are of one partition and no rows were deleted."""
    if file.has_deletes or file.offsets is None or file.partitions is None:
        return None
    return file.offsets.low if file.partitions.low == file.partitions.high else None
