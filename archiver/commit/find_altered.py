"""Find rows that other engines may have changed or duplicated (ADR 0040)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Final

from archiver.archive.table_files import TableFile
from archiver.commit.overlaps import overlapping, place_of_file
from archiver.commit.snapshot_effects import newly_written
from archiver.commit.table_rows import TableRows, file_names
from archiver.storage.formats import FORMATS, SegmentFormats
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import lacks_columns
from catalog.model import file_name
from catalog.offset_range import OffsetRange
from catalog.ranges.holes import Checked, ExpectedRange, Hole
from catalog.ranges.spans import Cover

_FROM_THE_START: Final = 0


def find_suspects(
    table: ArchiveTable,
    expected: Sequence[ExpectedRange],
    *,
    known: Checked | None = None,
    formats: SegmentFormats = FORMATS,
) -> tuple[OffsetRange, ...]:
    """Return whole ranges, and offsets beyond, that other engines may have written to since `known`.

    Raises StorageError.
    """
    metadata = table.iceberg.metadata
    suspicious = newly_written(table.iceberg, known.snapshot_id if known else None)
    if not suspicious:
        return ()
    live, own = TableRows(table, formats), file_names(expected)
    # A compaction gives its files the sequence number that the table had when it was planned.
    is_compacted = any(lacks_columns(metadata, file) for file in suspicious)
    first = _FROM_THE_START if is_compacted else min(file.sequence_number or 0 for file in suspicious)
    newer = [file for file in live.written_since(first) if file_name(file.path) not in own]
    touched = compress(expected, overlapping(expected, map(place_of_file, newer)))
    return (*map(OffsetRange.of_range, touched), *_beyond(newer, archived_ends(expected)))


def archived_ends(expected: Iterable[ExpectedRange]) -> dict[int, int]:
    ends: dict[int, int] = {}
    for item in expected:
        ends[item.partition] = max(item.end_offset, ends.get(item.partition, 0))
    return ends


def to_compare(
    expected: Iterable[ExpectedRange], spans: Iterable[OffsetRange], holes: Iterable[Hole]
) -> tuple[list[ExpectedRange], list[ExpectedRange]]:
    """Return the ranges to compare now, and the ranges that wait for holes.

    Without ranges that lack a digest or have accepted losses.
    """
    cover = Cover(spans)
    broken = {hole.range_id for hole in holes}
    gaps = Cover(map(OffsetRange.of_range, holes))
    ready: list[ExpectedRange] = []
    waiting: list[ExpectedRange] = []
    for item in expected:
        offsets = OffsetRange.of_range(item)
        if item.is_intact and item.digest is not None and cover.touches(offsets):
            has_hole = item.id in broken or gaps.touches(offsets)
            (waiting if has_hole else ready).append(item)
    return ready, waiting


def _beyond(files: Iterable[TableFile], ends: dict[int, int]) -> tuple[OffsetRange, ...]:
    """Return offsets that files may hold beyond `ends`.

    A file of several partitions must exceed all ends: otherwise each rewrite would cause a comparison.
    """
    spans = []
    for file in files:
        if file.partitions and file.offsets:
            low, high = file.partitions.low, file.partitions.high
            partitions = {low, high} | {partition for partition in ends if low <= partition <= high}
            if low == high or file.offsets.high >= max(ends.get(partition, 0) for partition in partitions):
                spans += [OffsetRange(partition, file.offsets.low, file.offsets.high) for partition in partitions]
    return Cover(spans).from_ends(ends)
