"""Find rows that others may have changed or doubled: by their snapshots and the bounds of their files (ADR 0040).

No data file is read. `compare_rows` reads what is found here, and tells which of it differs from the archived records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Final, TypeAlias

from archiver.archive.table_files import TableFile
from archiver.commit.overlaps import overlapping, place_of_file
from archiver.commit.snapshot_effects import newly_written
from archiver.commit.table_rows import TableRows, file_names
from archiver.storage.formats import FORMATS, SegmentFormats
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import lacks_columns
from catalog.model import file_name
from catalog.ranges.holes import AlteredRange, Checked, ExpectedRange, Hole
from catalog.ranges.spans import Cover

Span: TypeAlias = tuple[int, int, int]
"""Partition, start and end."""

_FROM_THE_START: Final = 0


def find_suspects(
    table: ArchiveTable,
    expected: Sequence[ExpectedRange],
    *,
    known: Checked | None = None,
    formats: SegmentFormats = FORMATS,
) -> tuple[Span, ...]:
    """The spans that others may have written rows of since the check `known`, as far as the retained history tells.

    They are whole archived ranges, and offsets beyond the archived end. Raises the leaves of StorageError.
    """
    metadata = table.iceberg.metadata
    suspicious = newly_written(table.iceberg, known.snapshot_id if known else None)
    if not suspicious:
        return ()
    live, own = TableRows(table, formats), file_names(expected)
    # A compaction gives its files the sequence number that the table had when it was planned.
    is_compacted = any(lacks_columns(metadata, each) for each in suspicious)
    first = _FROM_THE_START if is_compacted else min(each.sequence_number or 0 for each in suspicious)
    newer = [file for file in live.written_since(first) if file_name(file.path) not in own]
    touched = compress(expected, overlapping(expected, map(place_of_file, newer)))
    return (*map(span_of, touched), *_beyond(newer, archived_ends(expected)))


def span_of(one: ExpectedRange | AlteredRange) -> Span:
    """Partition, start and end of a range."""
    return one.partition, one.start_offset, one.end_offset


def archived_ends(expected: Iterable[ExpectedRange]) -> dict[int, int]:
    """The offset after the last archived range with records, by partition."""
    found: dict[int, int] = {}
    for each in expected:
        found[each.partition] = max(each.end_offset, found.get(each.partition, 0))
    return found


def to_compare(
    expected: Iterable[ExpectedRange], spans: Iterable[Span], holes: Iterable[Hole]
) -> tuple[list[ExpectedRange], list[ExpectedRange]]:
    """The archived ranges in `spans`: those to be compared, and those that have to wait until their holes are filled.

    Ranges without a digest, and those with rows that are accepted to be gone, can't be compared. They are in neither.
    """
    cover = Cover(spans)
    broken = {each.range_id for each in holes}
    gaps = Cover((each.partition, each.start_offset, each.end_offset) for each in holes)
    ready: list[ExpectedRange] = []
    waiting: list[ExpectedRange] = []
    for each in expected:
        if each.is_intact and each.digest is not None and cover.touches(*span_of(each)):
            has_hole = each.id in broken or gaps.touches(*span_of(each))
            (waiting if has_hole else ready).append(each)
    return ready, waiting


def _beyond(files: Iterable[TableFile], ends: dict[int, int]) -> tuple[Span, ...]:
    """What files may hold beyond the archived ends, by their bounds. Nothing of files whose bounds aren't stated.

    The offsets of a file with several partitions bound none of them well. It counts if it goes past all of their ends:
    otherwise each rewrite of old rows would have what is archived next read again.
    """
    found = []
    for file in files:
        if file.partitions and file.offsets:
            low, high = file.partitions.low, file.partitions.high
            held = {low, high} | {each for each in ends if low <= each <= high}
            if low == high or file.offsets.high >= max(ends.get(each, 0) for each in held):
                found += [(each, file.offsets.low, file.offsets.high + 1) for each in held]
    return Cover(found).from_ends(ends)
