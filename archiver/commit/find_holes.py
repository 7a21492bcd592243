"""Find a table's holes: registered rows that it lacks (ADR 0026).

Files are read only if counts don't suffice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

import numpy as np
from pyiceberg.manifest import ManifestContent

from archiver.archive.manifests import manifests_of
from archiver.commit.find_altered import find_suspects, to_compare
from archiver.commit.known_rows import later_than, sequence_of
from archiver.commit.snapshot_effects import keeps_rows
from archiver.commit.table_rows import Offsets, TableRows, file_names, within
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.segment import RowRange
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import cut_at, history, is_ours, since
from catalog.model import TopicRow
from catalog.offset_range import OffsetRange
from catalog.ranges.holes import Checked, ExpectedRange, Hole
from catalog.ranges.spans import Cover
from catalog.registry import Registry

WINDOW_ROWS: Final = 8_000_000
"""Expected rows that are counted at once. Each takes eight bytes."""

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
    formats = formats or FORMATS
    expected = registry.rows.expected_ranges(topic)  # before the table: so it has all of them
    fresh = load() or table
    if known is not None and later_than(known, fresh) is not None:
        holes = known.holes
    else:
        first = registry.retention.proven_first_offsets(topic, fresh.first_offsets)
        holes = search(fresh, expected, first, counts_tell=_counts_tell(known, fresh), formats=formats)
    before = registry.rows.last_checked(topic)
    suspects = find_suspects(fresh, expected, known=known, formats=formats)
    checked = _with_suspects(fresh, expected, holes, suspects, known=known, before=before)
    if not is_back:
        checked = replace(checked, unseen_before=_unseen_before(fresh, before))
    registry.rows.note_checked(topic, checked)
    if checked.unseen_before is not None:
        _LOG.warning(
            "%s: changes that other engines made before snapshot %d weren't checked, because the snapshots since the"
            " last check have expired. `archiver verify %s` compares every record with what was archived",
            topic.topic,
            checked.unseen_before,
            topic.topic,
        )
    return checked


def search(
    table: ArchiveTable,
    expected: Sequence[ExpectedRange],
    first_offsets: Mapping[int, int],
    *,
    counts_tell: bool = False,
    formats: SegmentFormats = FORMATS,
    window_rows: int = WINDOW_ROWS,
) -> tuple[Hole, ...]:
    """Return the missing rows of `expected`. `counts_tell` if no other engine added rows.

    Rows certainly below the partition's offset in `first_offsets` are retired, not missing.
    """
    if _counts_agree(table, expected):
        return ()
    live = TableRows(table, formats)
    suspects = live.suspects(expected)
    if not suspects or (counts_tell and live.rows_beside(expected, suspects) == _rows(suspects)):
        return ()
    return tuple(
        hole
        for _, group in groupby(suspects, key=lambda suspect: suspect.partition)
        for window in _windows(group, window_rows)
        for hole in _missing(live, window)
        if hole.end_offset > first_offsets.get(hole.partition, 0)
    )


def _with_suspects(
    table: ArchiveTable,
    expected: Sequence[ExpectedRange],
    holes: tuple[Hole, ...],
    suspects: Sequence[OffsetRange],
    *,
    known: Checked | None,
    before: Checked | None,
) -> Checked:
    """Altered ranges are compared again unless other engines only added or regrouped rows."""
    cover = Cover(map(OffsetRange.of_range, expected))
    altered = tuple(item for item in before.altered if cover.touches(OffsetRange.of_range(item))) if before else ()
    later = None if known is None or known.snapshot_id is None else since(table.iceberg.metadata, known.snapshot_id)
    is_settled = later is not None and all(keeps_rows(table.iceberg, snapshot) for snapshot in later)
    spans = Cover(
        (*suspects, *(before.uncompared if before else ()), *(() if is_settled else map(OffsetRange.of_range, altered)))
    ).ranges
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
    metadata = table.iceberg.metadata
    if before is not None and before.snapshot_id is not None and since(metadata, before.snapshot_id) is not None:
        return None
    return cut_at(metadata, before.sequence if before else 0)


def _counts_agree(table: ArchiveTable, expected: Sequence[ExpectedRange]) -> bool:
    metadata = table.iceberg.metadata
    snapshot = metadata.current_snapshot()
    if snapshot is None:
        return not expected
    if not all(map(is_ours, history(metadata))):
        return False
    manifests = manifests_of(table.iceberg, snapshot)
    if any(manifest.content is not ManifestContent.DATA for manifest in manifests):
        return False
    files = sum((manifest.added_files_count or 0) + (manifest.existing_files_count or 0) for manifest in manifests)
    rows = sum((manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0) for manifest in manifests)
    return (files, rows) == (len(file_names(expected)), _rows(expected))


def _counts_tell(known: Checked | None, table: ArchiveTable) -> bool:
    metadata = table.iceberg.metadata
    if known is not None and known.snapshot_id is not None and not known.holes:
        later = since(metadata, known.snapshot_id)
        return later is not None and all(keeps_rows(table.iceberg, snapshot) for snapshot in later)
    line = tuple(history(metadata))
    return (
        bool(line) and line[-1].sequence_number == 1 and all(keeps_rows(table.iceberg, snapshot) for snapshot in line)
    )


def _windows(ranges: Iterable[ExpectedRange], most: int) -> Iterator[list[ExpectedRange]]:
    window: list[ExpectedRange] = []
    for item in ranges:
        if window and _rows(window) + item.rows > most:
            yield window
            window = []
        window.append(item)
    if window:
        yield window


def _missing(live: TableRows, window: Sequence[ExpectedRange]) -> Iterator[Hole]:
    first, last = window[0], window[-1]
    offsets = live.offsets(
        RowRange(partition=first.partition, start_offset=first.start_offset, end_offset=last.end_offset)
    )
    for item in window:
        low, high = np.searchsorted(offsets, (item.start_offset, item.end_offset))
        present = offsets[low:high]
        rows = len(present) - int(within(present, item.accepted).sum())  # rows that came back stand for no other row
        if rows < item.rows:
            start, end = _hull(present, item)
            yield Hole(
                range_id=item.id,
                partition=item.partition,
                start_offset=start,
                end_offset=end,
                rows=item.rows - rows,
            )


def _hull(there: Offsets, one: ExpectedRange) -> tuple[int, int]:
    edges = np.concatenate(([one.start_offset - 1], there, [one.end_offset]))
    gaps = np.flatnonzero(np.diff(edges) > 1)
    if not len(gaps):
        return one.start_offset, one.end_offset
    return int(edges[gaps[0]]) + 1, int(edges[gaps[-1] + 1])


def _rows(ranges: Iterable[ExpectedRange]) -> int:
    return sum(item.rows for item in ranges)
