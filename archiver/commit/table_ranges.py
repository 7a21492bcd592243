"""The ranges of a table from every source: its journal, the footers of its files, the summaries of its snapshots."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from pyiceberg.table.snapshots import Snapshot

from archiver.archive.table_files import TableFile
from archiver.commit.footers import NO_EPOCH, ranges_of, table_info
from archiver.storage.segment import SegmentMetadata
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import summary_of
from catalog.iceberg.offsets import decode_spans
from catalog.model import TranslatedRange, new_id, ulid_in
from catalog.ranges.spans import joined
from catalog.ranges.stored_ranges import StoredFile, StoredRange, spread


def table_ranges(
    table: ArchiveTable,
    journaled: Iterable[StoredRange],
    files: Mapping[str, TableFile],
    footers: Mapping[str, SegmentMetadata],
) -> list[StoredRange]:
    """The journal's ranges, and those of files that it doesn't know.

    What the journal knows of a range stays: how many rows the table must have, and which are accepted to be gone. Files
    with other borders replace its ranges only if these have no file left, and if the files have exactly their offsets
    and rows. Accepted gaps that the journal doesn't know come from the summaries of snapshots.
    """
    places = _Places()
    for known in (*journaled, *(StoredRange.of(one, commit_id=commit_id) for one, commit_id in _accepted_gaps(table))):
        if not places.overlapping(known):
            places.put(known)
    described = {path: (footer, table_info(files[path], footer)) for path, footer in footers.items()}
    ranges = ranges_of(described)
    others: list[StoredRange] = []
    for translated in ranges.all:
        one = StoredRange.of(translated)
        there = places.overlapping(one)
        if not there:
            places.put(one)
        elif len(there) == 1 and there[0].offsets == one.offsets and not there[0].lost:
            places.put(_completed(there[0], one, files), instead_of=there)
        else:
            others.append(one)
    for found, there in list(_clusters(others, places)):
        if _account_for(found, there, files):
            for each in there:
                places.remove(each)
            for each in found:
                places.put(each)
    return places.ranges()


def _clusters(others: Iterable[StoredRange], places: _Places) -> Iterator[tuple[list[StoredRange], list[StoredRange]]]:
    """Found ranges, by partition and offset, that overlap each other or the same known ranges; and these ranges."""
    found: list[StoredRange] = []
    known: dict[str, StoredRange] = {}
    for one in others:
        there = {each.id: each for each in places.overlapping(one)}
        if found and (one.partition != found[-1].partition or not (there.keys() & known or _overlap(found[-1], one))):
            yield found, list(known.values())
            found, known = [], {}
        found.append(one)
        known |= there
    if found:
        yield found, list(known.values())


def _account_for(found: Sequence[StoredRange], known: Sequence[StoredRange], files: Mapping[str, TableFile]) -> bool:
    """Whether the found ranges have exactly the offsets and rows of known ones that have no file left."""
    return (
        not any(path in files for one in known for path in one.paths)
        and not any(_overlap(*each) for each in pairwise(found))
        and joined(one.offsets for one in found) == joined(one.offsets for one in known)
        and sum(one.rows for one in found) == sum(one.expected for one in known)
    )


def _overlap(first: StoredRange, second: StoredRange) -> bool:
    return first.start_offset < second.end_offset and second.start_offset < first.end_offset


def _accepted_gaps(table: ArchiveTable) -> list[tuple[TranslatedRange, str | None]]:
    """A range for each gap that a retained snapshot names, with the commit that recorded it."""
    gaps: list[tuple[TranslatedRange, str | None]] = []
    for snapshot in table.iceberg.metadata.snapshots:
        summary = summary_of(snapshot)
        gaps += [
            (range_without_file(table, snapshot, *span, lost=True), summary.get(keys.COMMIT_ID))
            for span in decode_spans(summary.get(keys.LOST, "{}"))
        ]
    return gaps


def range_without_file(
    table: ArchiveTable, snapshot: Snapshot, partition: int, start: int, end: int, *, lost: bool
) -> TranslatedRange:
    """A range of a commit in which no record survived, or that was accepted as lost."""
    return TranslatedRange(
        id=new_id(),
        topic=table.topic.topic,
        partition=partition,
        start_offset=start,
        end_offset=end,
        schema_version=table.ledger_version,
        leader_epoch=NO_EPOCH,
        files=(),
        created_ms=snapshot.timestamp_ms,
        lost=lost,
    )


def _completed(known: StoredRange, found: StoredRange, files: Mapping[str, TableFile]) -> StoredRange:
    """The range after some of its files left the table and other files replaced them."""
    kept = [file for file in known.files if file.path in files]
    gone = [file for file in known.files if file.path not in files]
    ids = {file.id for file in known.files}
    made = [replace(file, id=_unused(file, ids)) for file in found.files if file.path not in known.paths]
    first, *others = spread([*kept, *made], known.expected)
    first = replace(
        first,
        erased=first.erased + sum(file.erased for file in gone),
        lost=first.lost + sum(file.lost for file in gone),
        retired=first.retired + sum(file.retired for file in gone),
    )
    return replace(known, files=(first, *others))


def _unused(file: StoredFile, ids: Container[str]) -> str:
    """The file's id, or the ULID in its name if a file of the range has that id: copies of a refill had its origin."""
    return file.id if file.id not in ids else ulid_in(file.path or "") or new_id()


class _Places:
    """Ranges that don't overlap, by partition and offset."""

    def __init__(self) -> None:
        self._ranges: dict[int, list[StoredRange]] = {}

    def overlapping(self, one: StoredRange) -> list[StoredRange]:
        ranges = self._ranges.get(one.partition, [])
        first = bisect_left(ranges, one.start_offset, key=lambda each: each.end_offset - 1)
        last = bisect_left(ranges, one.end_offset, key=lambda each: each.start_offset)
        return ranges[first:last]

    def remove(self, one: StoredRange) -> None:
        self._ranges[one.partition].remove(one)

    def put(self, one: StoredRange, *, instead_of: Iterable[StoredRange] = ()) -> None:
        for each in instead_of:
            self.remove(each)
        ranges = self._ranges.setdefault(one.partition, [])
        ranges.insert(bisect_left(ranges, one.start_offset, key=lambda each: each.start_offset), one)

    def ranges(self) -> list[StoredRange]:
        return [one for _, ranges in sorted(self._ranges.items()) for one in ranges]
