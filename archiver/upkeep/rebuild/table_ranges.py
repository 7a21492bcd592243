"""The ranges of a table from every source: its journal, the footers of its files, the summaries of its snapshots."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import replace

from archiver.archive.table_files import TableFile
from archiver.storage.segment import SegmentMetadata
from archiver.upkeep.rebuild.footers import ranges_of, table_info
from archiver.upkeep.rebuild.told_losses import told_losses
from catalog.iceberg.archive_table import ArchiveTable
from catalog.ranges.held import HeldRange, spread


def table_ranges(
    table: ArchiveTable,
    journaled: Iterable[HeldRange],
    files: Mapping[str, TableFile],
    footers: Mapping[str, SegmentMetadata],
) -> list[HeldRange]:
    """The journal's ranges, and those of files that it doesn't know, which replace ranges whose files are gone.

    Accepted gaps that the journal doesn't know come from the summaries of snapshots.
    """
    places = _Places()
    for known in (*journaled, *(HeldRange.of(one, commit_id=commit_id) for one, commit_id in told_losses(table))):
        if not places.overlapping(known):
            places.put(known)
    described = {path: (footer, table_info(files[path], footer)) for path, footer in footers.items()}
    ranges = ranges_of(described)
    partial = {one.id for one in ranges.partial}
    for translated in ranges.all:
        one = HeldRange.of(translated)
        there = places.overlapping(one)
        is_gone = not any(path in files for known in there for path in known.paths)
        is_same = len(there) == 1 and there[0].offsets == one.offsets
        if is_same and (translated.id in partial or not is_gone):
            places.put(_completed(there[0], one, files), instead_of=there)
        elif is_gone:
            places.put(one, instead_of=there)
    return places.ranges()


def _completed(known: HeldRange, found: HeldRange, files: Mapping[str, TableFile]) -> HeldRange:
    """The range after some of its files left the table and other files replaced them."""
    kept = [file for file in known.files if file.path in files]
    made = [file for file in found.files if file.path not in known.paths]
    return replace(known, files=tuple(spread([*kept, *made], known.expected)))


class _Places:
    """Ranges that don't overlap, by partition and offset."""

    def __init__(self) -> None:
        self._ranges: dict[int, list[HeldRange]] = {}

    def overlapping(self, one: HeldRange) -> list[HeldRange]:
        ranges = self._ranges.get(one.partition, [])
        first = bisect_left(ranges, one.start_offset, key=lambda each: each.end_offset - 1)
        last = bisect_left(ranges, one.end_offset, key=lambda each: each.start_offset)
        return ranges[first:last]

    def put(self, one: HeldRange, *, instead_of: Iterable[HeldRange] = ()) -> None:
        ranges = self._ranges.setdefault(one.partition, [])
        for each in instead_of:
            ranges.remove(each)
        ranges.insert(bisect_left(ranges, one.start_offset, key=lambda each: each.start_offset), one)

    def ranges(self) -> list[HeldRange]:
        return [one for _, ranges in sorted(self._ranges.items()) for one in ranges]
