"""Watermarks, first offset since a time, and latest time.

Files are read only if bounds don't suffice.
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
    next_offset = snapshot.next_offsets.get(partition)
    if next_offset is not None:
        return next_offset
    columns = snapshot.files.columns
    high_offsets = pc.filter(
        columns[file_columns.HIGH_OFFSET], pa.array(may_hold(columns, RowRange(partition=partition)))
    )
    highest = pc.max(high_offsets).as_py()
    return 0 if highest is None else int(highest) + 1


def record_ends(snapshot: TopicSnapshot) -> dict[int, int]:
    """Return offsets from which no file has records, by bounds (maybe too high).

    Empty if a file lacks bounds.
    """
    low, high, offset = file_columns.LOW_PARTITION, file_columns.HIGH_PARTITION, file_columns.HIGH_OFFSET
    every = pc.ScalarAggregateOptions(skip_nulls=False)
    grouped = snapshot.files.columns.select([low, high, offset]).group_by([low, high])
    ends: dict[int, int] = {}
    for group in grouped.aggregate([(offset, "max", every)]).to_pylist():
        last = group[f"{offset}_max"]
        if group[low] is None or last is None:
            return {}
        for partition in range(group[low], group[high] + 1):
            ends[partition] = max(ends.get(partition, 0), last + 1)
    return ends


def low_watermark(snapshot: TopicSnapshot, partition: int) -> int:
    """The first offset that wasn't retired; without records the high watermark."""
    best, first = high_watermark(snapshot, partition), snapshot.first_offsets.get(partition, 0)
    for file in select_files(snapshot.files, RowRange(partition=partition, start_offset=first)):
        if _low(file) >= best:
            break
        low = _known_low(file)
        if low is None or low < first:
            rows = RowRange(partition=partition, start_offset=first, end_offset=best)
            low = _first_offset(snapshot.storage, file, rows)
        best = best if low is None else min(best, low)
    return best


def first_offset_since(snapshot: TopicSnapshot, partition: int, timestamp: int) -> int | None:
    """As in Kafka's ListOffsets: the lowest offset at or after `timestamp` (ms), or None."""
    rows = RowRange(partition=partition, start_offset=snapshot.first_offsets.get(partition, 0), min_timestamp=timestamp)
    best: int | None = None
    for file in select_files(snapshot.files, rows):
        if _low(file) >= rows.end_offset:
            break
        offset = _first_offset(snapshot.storage, file, rows)
        if offset is not None:
            best = offset
            rows = replace(rows, end_offset=offset)
    return best


def latest_time(snapshot: TopicSnapshot, partition: int) -> tuple[int, int] | None:
    """Return the highest timestamp (ms) and its first offset, or None."""
    rows = RowRange(partition=partition, min_timestamp=0)
    best: tuple[int, int] | None = None
    files = list(select_files(snapshot.files, rows))
    for file in sorted(files, key=lambda table_file: (table_file.latest is not None, -(table_file.latest or 0))):
        if best is not None and file.latest is not None and file.latest < best[0]:
            break
        candidate = _latest_in(snapshot.storage, file, rows)
        if candidate is not None and (best is None or (candidate[0], -candidate[1]) > (best[0], -best[1])):
            best = candidate
            rows = replace(rows, min_timestamp=candidate[0])
    return best


def _latest_in(storage: TopicStorage, file: TableFile, wanted: RowRange) -> tuple[int, int] | None:
    opened = OpenFile.open(storage, file)
    try:
        best: tuple[int, int] | None = None
        for block in opened.reader.blocks(wanted):
            for kafka in opened.kafka(block, wanted):
                times, offsets = record_timestamps(kafka).to_numpy(), kafka.field(names.OFFSET).to_numpy()
                if len(times) and times.max() >= (wanted.min_timestamp or 0):
                    latest = int(times.max()), int(offsets[times == times.max()].min())
                    best = latest if best is None or (latest[0], -latest[1]) > (best[0], -best[1]) else best
        return best
    finally:
        opened.close()


def _first_offset(storage: TopicStorage, file: TableFile, wanted: RowRange) -> int | None:
    opened = OpenFile.open(storage, file)
    try:
        least: int | None = None
        for block in sorted(opened.reader.blocks(wanted), key=lambda candidate: candidate.low_offset or 0):
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
    if file.has_deletes or file.offsets is None or file.partitions is None:
        return None
    return file.offsets.low if file.partitions.low == file.partitions.high else None
