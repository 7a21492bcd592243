"""The ranges of a table from every source: its journal, the footers of its files, the summaries of its snapshots."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import replace

from archiver.archive.table_files import TableFile
from archiver.storage.segment import SegmentMetadata
from archiver.upkeep.rebuild.footers import ranges_of, table_info
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.offsets import decode_spans
from catalog.model import TranslatedRange, new_id
from catalog.ranges.stored_ranges import StoredRange, spread


def table_ranges(
    table: ArchiveTable,
    journaled: Iterable[StoredRange],
    files: Mapping[str, TableFile],
    footers: Mapping[str, SegmentMetadata],
) -> list[StoredRange]:
    """The journal's ranges, and those of files that it doesn't know, which replace ranges whose files are gone.

    Accepted gaps that the journal doesn't know come from the summaries of snapshots.
    """
    places = _Places()
    for known in (*journaled, *(StoredRange.of(one, commit_id=commit_id) for one, commit_id in _accepted_gaps(table))):
        if not places.overlapping(known):
            places.put(known)
    described = {path: (footer, table_info(files[path], footer)) for path, footer in footers.items()}
    ranges = ranges_of(described)
    partial = {one.id for one in ranges.partial}
    for translated in ranges.all:
        one = StoredRange.of(translated)
        there = places.overlapping(one)
        is_gone = not any(path in files for known in there for path in known.paths)
        is_same = len(there) == 1 and there[0].offsets == one.offsets
        if is_same and (translated.id in partial or not is_gone):
            places.put(_completed(there[0], one, files), instead_of=there)
        elif is_gone:
            places.put(one, instead_of=there)
    return places.ranges()


def _accepted_gaps(table: ArchiveTable) -> list[tuple[TranslatedRange, str | None]]:
    """A range for each gap that a retained snapshot names, with the commit that recorded it."""
    found: list[tuple[TranslatedRange, str | None]] = []
    for snapshot in table.iceberg.metadata.snapshots:
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        for partition, start, end in decode_spans(summary.get(keys.LOST, "{}")):
            lost = TranslatedRange(
                id=new_id(),
                topic=table.topic.topic,
                partition=partition,
                start_offset=start,
                end_offset=end,
                schema_version=table.ledger_version,
                leader_epoch=-1,
                files=(),
                created_ms=snapshot.timestamp_ms,
                lost=True,
            )
            found.append((lost, summary.get(keys.COMMIT_ID)))
    return found


def _completed(known: StoredRange, found: StoredRange, files: Mapping[str, TableFile]) -> StoredRange:
    """The range after some of its files left the table and other files replaced them."""
    kept = [file for file in known.files if file.path in files]
    made = [file for file in found.files if file.path not in known.paths]
    return replace(known, files=tuple(spread([*kept, *made], known.expected)))


class _Places:
    """Ranges that don't overlap, by partition and offset."""

    def __init__(self) -> None:
        self._ranges: dict[int, list[StoredRange]] = {}

    def overlapping(self, one: StoredRange) -> list[StoredRange]:
        ranges = self._ranges.get(one.partition, [])
        first = bisect_left(ranges, one.start_offset, key=lambda each: each.end_offset - 1)
        last = bisect_left(ranges, one.end_offset, key=lambda each: each.start_offset)
        return ranges[first:last]

    def put(self, one: StoredRange, *, instead_of: Iterable[StoredRange] = ()) -> None:
        ranges = self._ranges.setdefault(one.partition, [])
        for each in instead_of:
            ranges.remove(each)
        ranges.insert(bisect_left(ranges, one.start_offset, key=lambda each: each.start_offset), one)

    def ranges(self) -> list[StoredRange]:
        return [one for _, ranges in sorted(self._ranges.items()) for one in ranges]
