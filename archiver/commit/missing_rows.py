"""Find the rows that a table should have by the registry, and lacks: its holes, by range of offsets (ADR 0026).

Files that others rewrote count for the offsets they hold, so after a compaction by anybody nothing is missing. Files
are read only where counts don't decide it. The result is kept in the registry for as long as it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.manifest import ManifestContent
from pyiceberg.table.snapshots import Snapshot

from archiver.archive.deletes import DeleteFiles
from archiver.archive.mappings import KnownMappings, MappingSource
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.table_files import ManifestReader, TableFile
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import RowRange
from archiver.wire.record_digest import RecordDigest
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import history, is_ours, keeps_rows, only_adds, since, summary_of
from catalog.iceberg.offsets import decode_ranges
from catalog.model import TopicRow, file_name
from catalog.ranges.holes import Checked, ExpectedRange, Hole
from catalog.ranges.spans import joined
from catalog.registry import Registry
from schema_mapping import names

RENEWED: Final = 20
"""After this many snapshots the result is noted again, before the snapshot that it belongs to expires."""
WINDOW_ROWS: Final = 8_000_000
"""How many expected rows are counted at once. Each takes eight bytes."""

Offsets: TypeAlias = npt.NDArray[np.int64]


def find_holes(
    topic: TopicRow,
    table: ArchiveTable,
    registry: Registry,
    load: Callable[[], ArchiveTable | None],
    *,
    is_back: bool = False,
    formats: SegmentFormats = FORMATS,
) -> tuple[Hole, ...]:
    """The rows that the table lacks, by partition and offset.

    `table` was loaded a short time ago; `load` loads it again. `is_back` says that the table was set back: then the
    result of an earlier check says nothing about what came after it. Raises the leaves of StorageError, RegistryError
    and TableError, and ReplayError.
    """
    known = None if is_back else registry.rows.checked(topic)
    if known is not None and (later := _later(known, table)) is not None:
        if len(later) >= RENEWED:
            registry.rows.note_checked(topic, Checked(snapshot_id=table.snapshot_id, holes=known.holes))
        return known.holes
    expected = registry.rows.expected_ranges(topic)  # before the table: so it has all of them
    fresh = load() or table
    holes = search(fresh, expected, counts_tell=_counts_tell(known, fresh), formats=formats)
    registry.rows.note_checked(topic, Checked(snapshot_id=fresh.snapshot_id, holes=holes))
    return holes


def search(
    table: ArchiveTable,
    expected: Sequence[ExpectedRange],
    *,
    counts_tell: bool = False,
    formats: SegmentFormats = FORMATS,
) -> tuple[Hole, ...]:
    """The rows of `expected` that the table lacks. `counts_tell` says that nobody else added rows."""
    if _counts_agree(table, expected):
        return ()
    live = TableRows(table, formats)
    suspects = live.suspects(expected)
    if not suspects or (counts_tell and live.rows_beside(expected, suspects) == _rows(suspects)):
        return ()
    return tuple(
        hole
        for _, group in groupby(suspects, key=lambda each: each.partition)
        for window in _windows(group)
        for hole in _missing(live, window)
    )


def named(holes: Iterable[Hole]) -> str:
    """Holes as text: `partition 0 [10, 20) 10 rows; …`."""
    found = []
    for partition, group in groupby(sorted(holes, key=_place), key=lambda each: each.partition):
        those = list(group)
        spans = ", ".join(f"[{start}, {end})" for start, end in joined((e.start_offset, e.end_offset) for e in those))
        found.append(f"partition {partition} {spans} {sum(each.rows for each in those)} rows")
    return "; ".join(found)


class TableRows:
    """The rows of a table's current snapshot, by file and offset."""

    def __init__(self, table: ArchiveTable, formats: SegmentFormats, mappings: MappingSource | None = None) -> None:
        self._files = {file_name(file.path): file for file in ManifestReader().files(table.iceberg)}
        objects = ObjectStore.of_table(table.iceberg)
        self._storage = TopicStorage(
            deletes=DeleteFiles(objects, formats),
            objects=objects,
            formats=formats,
            mappings=KnownMappings(table.topic.topic, mappings),
        )

    def suspects(self, expected: Sequence[ExpectedRange]) -> list[ExpectedRange]:
        """The ranges that may have lost rows, and those that share a file with one of them.

        Every other range has all of its files in the table, with all rows, and nobody deleted any.
        """
        wanted: Counter[str] = Counter()
        for one in expected:
            wanted.update({file_name(each.path): each.rows for each in one.files})
        bad = {name for name, rows in wanted.items() if not self._has(name, rows)}
        found: dict[str, ExpectedRange] = {}
        while more := [one for one in expected if one.id not in found and (not one.files or bad & _names((one,)))]:
            found |= {one.id: one for one in more}
            bad |= _names(more)
        return [one for one in expected if one.id in found]

    def _has(self, name: str, rows: int) -> bool:
        file = self._files.get(name)
        return file is not None and not file.has_deletes and file.rows >= rows

    def has_file(self, path: str) -> bool:
        """Whether the table has the file, whatever was deleted from it."""
        return file_name(path) in self._files

    def rows_beside(self, expected: Sequence[ExpectedRange], suspects: Sequence[ExpectedRange]) -> int | None:
        """The number of rows in files that don't belong to complete ranges. None where some of them were deleted."""
        whole = _names(expected) - _names(suspects)
        beside = [file for name, file in self._files.items() if name not in whole]
        return None if any(file.has_deletes for file in beside) else sum(file.rows for file in beside)

    def offsets(self, wanted: RowRange) -> Offsets:
        """The offsets of the table's rows in a range of a partition, ascending, each once."""
        found = [
            kafka.field(names.OFFSET).to_numpy()
            for file in self._files.values()
            if _may_hold(file, wanted)
            for kafka in self._read(file, wanted)
        ]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)

    def digest(self, wanted: RowRange) -> str:
        """The digest of the table's records in a range of a partition (docs/digest.md). Reads whole rows."""
        found = RecordDigest()
        for file in self._files.values():
            if _may_hold(file, wanted):
                with closing(OpenFile.open(self._storage, file)) as opened:
                    for block in opened.reader.blocks(wanted):
                        for records in opened.records(block, wanted):
                            found += RecordDigest.of_seen(records)
        return found.text

    def _read(self, file: TableFile, wanted: RowRange) -> Iterator[pa.StructArray]:
        with closing(OpenFile.open(self._storage, file)) as opened:
            for block in opened.reader.blocks(wanted):
                yield from opened.kafka(block, wanted)


def _later(known: Checked, table: ArchiveTable) -> tuple[Snapshot, ...] | None:
    """The snapshots since the last check if its result still holds after them, else None."""
    if known.snapshot_id is None:
        return () if table.snapshot_id is None else None
    later = since(table.iceberg.metadata, known.snapshot_id)
    if later is None or not all(map(only_adds, later)):
        return None
    if known.holes and not all(_is_beside(summary_of(each).get(keys.RANGES), known.holes) for each in later):
        return None
    return later


def _is_beside(ranges: str | None, holes: Iterable[Hole]) -> bool:
    """Whether a snapshot brought ranges, and none of them overlaps a hole."""
    spans = {} if ranges is None else decode_ranges(ranges)
    return bool(spans) and not any(
        each.partition in spans
        and spans[each.partition][0] < each.end_offset
        and each.start_offset < spans[each.partition][1]
        for each in holes
    )


def _counts_agree(table: ArchiveTable, expected: Sequence[ExpectedRange]) -> bool:
    """Whether the table has as many files and rows as expected, and its history shows only commits of ours."""
    metadata = table.iceberg.metadata
    snapshot = metadata.current_snapshot()
    if snapshot is None:
        return not expected
    if not all(map(is_ours, history(metadata))):
        return False
    manifests = snapshot.manifests(table.io)
    if any(each.content is not ManifestContent.DATA for each in manifests):
        return False
    files = sum((each.added_files_count or 0) + (each.existing_files_count or 0) for each in manifests)
    rows = sum((each.added_rows_count or 0) + (each.existing_rows_count or 0) for each in manifests)
    return (files, rows) == (len(_names(expected)), _rows(expected))


def _counts_tell(known: Checked | None, table: ArchiveTable) -> bool:
    """Whether counting rows is enough: since the table was complete, snapshots claim only to regroup files."""
    metadata = table.iceberg.metadata
    if known is not None and known.snapshot_id is not None and not known.holes:
        later = since(metadata, known.snapshot_id)
        return later is not None and all(map(keeps_rows, later))
    line = tuple(history(metadata))
    return bool(line) and line[-1].sequence_number == 1 and all(map(keeps_rows, line))


def _windows(ranges: Iterable[ExpectedRange]) -> Iterator[list[ExpectedRange]]:
    """Ranges of one partition in groups of at most `WINDOW_ROWS` rows."""
    window: list[ExpectedRange] = []
    for each in ranges:
        if window and _rows(window) + each.rows > WINDOW_ROWS:
            yield window
            window = []
        window.append(each)
    if window:
        yield window


def _missing(live: TableRows, window: Sequence[ExpectedRange]) -> Iterator[Hole]:
    first, last = window[0], window[-1]
    there = live.offsets(
        RowRange(partition=first.partition, start_offset=first.start_offset, end_offset=last.end_offset)
    )
    for each in window:
        low, high = np.searchsorted(there, (each.start_offset, each.end_offset))
        if high - low < each.rows:
            start, end = _hull(there[low:high], each)
            yield Hole(
                range_id=each.id,
                partition=each.partition,
                start_offset=start,
                end_offset=end,
                rows=each.rows - int(high - low),
            )


def _hull(there: Offsets, one: ExpectedRange) -> tuple[int, int]:
    """The smallest span of the range that contains all of its missing offsets."""
    edges = np.concatenate(([one.start_offset - 1], there, [one.end_offset]))
    gaps = np.flatnonzero(np.diff(edges) > 1)
    if not len(gaps):
        return one.start_offset, one.end_offset
    return int(edges[gaps[0]]) + 1, int(edges[gaps[-1] + 1])


def _may_hold(file: TableFile, wanted: RowRange) -> bool:
    if file.offsets and (file.offsets.high < wanted.start_offset or file.offsets.low >= wanted.end_offset):
        return False
    held = file.partitions
    return held is None or held.low <= wanted.partition <= held.high


def _names(ranges: Iterable[ExpectedRange]) -> set[str]:
    return {file_name(each.path) for one in ranges for each in one.files}


def _rows(ranges: Iterable[ExpectedRange]) -> int:
    return sum(each.rows for each in ranges)


def _place(hole: Hole) -> tuple[int, int]:
    return hole.partition, hole.start_offset
