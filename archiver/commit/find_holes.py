"""Find the rows that a table should have by the registry, and lacks: its holes, by range of offsets (ADR 0026).

Files that others rewrote count for the offsets they hold, so after a compaction by anybody nothing is missing. Files
are read only where counts don't decide it. The result is kept in the registry for as long as it holds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

import numpy as np
from pyiceberg.manifest import ManifestContent
from pyiceberg.table.snapshots import Snapshot

from archiver.commit.find_altered import Span, find_suspects, span_of, to_compare
from archiver.commit.table_rows import Offsets, TableRows, file_names
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.segment import RowRange
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import cut_at, history, is_ours, keeps_rows, only_adds, since, summary_of
from catalog.iceberg.offsets import decode_ranges
from catalog.model import TopicRow
from catalog.ranges.holes import AlteredRange, Checked, ExpectedRange, Hole
from catalog.ranges.spans import Cover, joined
from catalog.registry import Registry

RENEWED: Final = 20
"""After this many snapshots the result is noted again, before the snapshot that it belongs to expires."""
RENEWED_MS: Final = 3_600_000
"""The same after this long, as snapshots expire by their age."""
WINDOW_ROWS: Final = 8_000_000
"""How many expected rows are counted at once. Each takes eight bytes."""

_LOG = logging.getLogger(__name__)


def check_rows(
    topic: TopicRow,
    table: ArchiveTable,
    registry: Registry,
    load: Callable[[], ArchiveTable | None],
    *,
    is_back: bool = False,
    formats: SegmentFormats = FORMATS,
) -> Checked:
    """The rows that the table lacks, by partition and offset, and the ranges that others altered as far as is known.

    What others may have altered since is noted, for `compare_rows`. No data file is read for it.

    `table` was loaded a short time ago; `load` loads it again. `is_back` says that the table was set back: then the
    result of an earlier check says nothing about what came after it. Raises the leaves of StorageError, RegistryError
    and TableError, and ReplayError.
    """
    known = None if is_back else registry.rows.checked(topic)
    later = None if known is None else _later(known, table)
    if known is not None and later is not None and all(map(is_ours, later)):
        if len(later) >= RENEWED or _is_old(later):
            registry.rows.note_checked(topic, replace(known, snapshot_id=table.snapshot_id, sequence=_sequence(table)))
        return known
    expected = registry.rows.expected_ranges(topic)  # before the table: so it has all of them
    fresh = load() or table
    if known is not None and _later(known, fresh) is not None:
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
            "%s: changes that others made before snapshot %d weren't looked at: the snapshots since the last check"
            " have expired",
            topic.topic,
            found.unseen_before,
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


def named(holes: Iterable[Hole | AlteredRange]) -> str:
    """Holes or altered ranges as text: `partition 0 [10, 20) 10 rows; …`."""
    found = []
    for partition, group in groupby(sorted(holes, key=_place), key=lambda each: each.partition):
        those = list(group)
        spans = ", ".join(f"[{start}, {end})" for start, end in joined((e.start_offset, e.end_offset) for e in those))
        found.append(f"partition {partition} {spans} {sum(each.rows for each in those)} rows")
    return "; ".join(found)


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
    is_settled = later is not None and all(map(keeps_rows, later))
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
        sequence=_sequence(table),
    )


def _unseen_before(table: ArchiveTable, before: Checked | None) -> int | None:
    """The oldest retained snapshot, where the history doesn't reach back to the last check."""
    metadata = table.iceberg.metadata
    if before is not None and before.snapshot_id is not None and since(metadata, before.snapshot_id) is not None:
        return None
    return cut_at(metadata, before.sequence if before else 0)


def _sequence(table: ArchiveTable) -> int:
    snapshot = table.iceberg.metadata.current_snapshot()
    return 0 if snapshot is None else snapshot.sequence_number or 0


def _is_old(later: Sequence[Snapshot]) -> bool:
    return bool(later) and time.time() * 1000 - later[-1].timestamp_ms >= RENEWED_MS


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
    return (files, rows) == (len(file_names(expected)), _rows(expected))


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


def _rows(ranges: Iterable[ExpectedRange]) -> int:
    return sum(each.rows for each in ranges)


def _place(hole: Hole | AlteredRange) -> tuple[int, int]:
    return hole.partition, hole.start_offset
