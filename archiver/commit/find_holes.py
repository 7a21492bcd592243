"""Find the rows that a table should have by the registry, and lacks: its holes, by range of offsets (ADR 0026).

Files that others rewrote count for the offsets they hold, so after a compaction by anybody nothing is missing. Files
are read only where counts don't decide it. The result is kept in the registry for as long as it holds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

import numpy as np
from pyiceberg.manifest import ManifestContent

from archiver.archive.manifests import manifests_of
from archiver.commit.find_altered import Span, find_suspects, span_of, to_compare
from archiver.commit.known_rows import later_than, sequence_of
from archiver.commit.snapshot_effects import keeps_rows
from archiver.commit.table_rows import Offsets, TableRows, file_names
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.segment import RowRange
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import cut_at, history, is_ours, since
from catalog.model import TopicRow
from catalog.ranges.holes import Checked, ExpectedRange, Hole
from catalog.ranges.spans import Cover
from catalog.registry import Registry

WINDOW_ROWS: Final = 8_000_000
"""How many expected rows are counted at once. Each takes eight bytes."""

_LOG = logging.getLogger(__name__)


def look_again(
    topic: TopicRow,
    table: ArchiveTable,
    registry: Registry,
    load: Callable[[], ArchiveTable | None],
    *,
    known: Checked | None,
    is_back: bool,
    formats: SegmentFormats | None = None,
) -> Checked:
    """Check the table where the result `known` of the check before doesn't hold any more; see `check_rows`."""
    formats = formats or FORMATS
    expected = registry.rows.expected_ranges(topic)  # before the table: so it has all of them
    fresh = load() or table
    if known is not None and later_than(known, fresh) is not None:
        holes = known.holes
    else:
        holes = search(fresh, expected, counts_tell=_counts_tell(known, fresh), formats=formats)
    before = registry.rows.last_checked(topic)
    suspects = find_suspects(fresh, expected, known=known, formats=formats)
    found = _with_suspects(fresh, expected, holes, suspects, known=known, before=before)
    if not is_back:
        found = replace(found, unseen_before=_unseen_before(fresh, before))
    registry.rows.note_checked(topic, found)
    if found.unseen_before is not None:
        _LOG.warning(
            "%s: changes that other engines made before snapshot %d weren't checked, because the snapshots since the"
            " last check have expired. `archiver verify %s` compares every record with what was archived",
            topic.topic,
            found.unseen_before,
            topic.topic,
        )
    return found


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


def _with_suspects(
    table: ArchiveTable,
    expected: Sequence[ExpectedRange],
    holes: tuple[Hole, ...],
    suspects: Sequence[Span],
    *,
    known: Checked | None,
    before: Checked | None,
) -> Checked:
    """The check with what has to be compared: new suspects, and what the check before left.

    Ranges that were altered are compared again, unless others only added or regrouped rows since.
    """
    there = Cover(map(span_of, expected))
    altered = tuple(each for each in before.altered if there.touches(*span_of(each))) if before else ()
    later = None if known is None or known.snapshot_id is None else since(table.iceberg.metadata, known.snapshot_id)
    is_settled = later is not None and all(keeps_rows(table.iceberg, each) for each in later)
    spans = Cover(
        (*suspects, *(before.uncompared if before else ()), *(() if is_settled else map(span_of, altered)))
    ).spans
    ready, _ = to_compare(expected, spans, holes)
    return Checked(
        snapshot_id=table.snapshot_id,
        holes=holes,
        altered=altered,
        uncompared=spans,
        uncompared_rows=_rows(ready),
        sequence=sequence_of(table),
    )


def _unseen_before(table: ArchiveTable, before: Checked | None) -> int | None:
    """The oldest retained snapshot, where the history doesn't reach back to the last check."""
    metadata = table.iceberg.metadata
    if before is not None and before.snapshot_id is not None and since(metadata, before.snapshot_id) is not None:
        return None
    return cut_at(metadata, before.sequence if before else 0)


def _counts_agree(table: ArchiveTable, expected: Sequence[ExpectedRange]) -> bool:
    """Whether the table has as many files and rows as expected, and its history shows only commits of ours."""
    metadata = table.iceberg.metadata
    snapshot = metadata.current_snapshot()
    if snapshot is None:
        return not expected
    if not all(map(is_ours, history(metadata))):
        return False
    manifests = manifests_of(table.iceberg, snapshot)
    if any(each.content is not ManifestContent.DATA for each in manifests):
        return False
    files = sum((each.added_files_count or 0) + (each.existing_files_count or 0) for each in manifests)
    rows = sum((each.added_rows_count or 0) + (each.existing_rows_count or 0) for each in manifests)
    return (files, rows) == (len(file_names(expected)), _rows(expected))


def _counts_tell(known: Checked | None, table: ArchiveTable) -> bool:
    """Whether counting rows is enough: since the table was complete, snapshots claim only to regroup files."""
    metadata = table.iceberg.metadata
    if known is not None and known.snapshot_id is not None and not known.holes:
        later = since(metadata, known.snapshot_id)
        return later is not None and all(keeps_rows(table.iceberg, each) for each in later)
    line = tuple(history(metadata))
    return bool(line) and line[-1].sequence_number == 1 and all(keeps_rows(table.iceberg, each) for each in line)


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


def _rows(ranges: Iterable[ExpectedRange]) -> int:
    return sum(each.rows for each in ranges)
