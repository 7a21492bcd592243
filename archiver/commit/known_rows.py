"""Whether an earlier row check still holds, and its description."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from pyiceberg.table.snapshots import Snapshot

from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import is_ours, since, summary_of
from catalog.iceberg.offsets import decode_ranges
from catalog.ranges.holes import AlteredRange, Checked, Hole
from catalog.ranges.spans import joined


def named(holes: Iterable[Hole | AlteredRange]) -> str:
    parts = []
    for partition, group in groupby(sorted(holes, key=_place), key=lambda hole: hole.partition):
        members = list(group)
        spans = ", ".join(f"[{start}, {end})" for start, end in joined((e.start_offset, e.end_offset) for e in members))
        parts.append(f"partition {partition} {spans} {sum(member.rows for member in members)} rows")
    return "; ".join(parts)


def later_than(known: Checked, table: ArchiveTable) -> tuple[Snapshot, ...] | None:
    """Return None if the check no longer holds."""
    later = since(table.iceberg.metadata, known.snapshot_id)
    if later is None or not _all_add(later, table):
        return None
    if known.holes and not all(_is_beside(summary_of(snapshot).get(keys.RANGES), known.holes) for snapshot in later):
        return None
    return later


def _all_add(later: Iterable[Snapshot], table: ArchiveTable) -> bool:
    foreign = [snapshot for snapshot in later if not is_ours(snapshot)]
    if not foreign:  # the usual case imports nothing that reads manifests
        return True
    from archiver.commit.snapshot_effects import only_adds

    return all(only_adds(table.iceberg, snapshot) for snapshot in foreign)


def sequence_of(table: ArchiveTable) -> int:
    snapshot = table.iceberg.metadata.current_snapshot()
    return 0 if snapshot is None else snapshot.sequence_number or 0


def _is_beside(ranges: str | None, holes: Iterable[Hole]) -> bool:
    spans = {} if ranges is None else decode_ranges(ranges)
    return bool(spans) and not any(
        hole.partition in spans
        and spans[hole.partition][0] < hole.end_offset
        and hole.start_offset < spans[hole.partition][1]
        for hole in holes
    )


def _place(hole: Hole | AlteredRange) -> tuple[int, int]:
    return hole.partition, hole.start_offset
