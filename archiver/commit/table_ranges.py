"""A table's ranges from journal, footers and snapshot summaries."""

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
    """Return the journal's ranges, and the ranges of files that it lacks.

    Files with other borders replace ranges without files if offsets and rows are the same.
    """
    places = _RangePositions()
    for item in (*journaled, *(StoredRange.of(gap, commit_id=commit_id) for gap, commit_id in _accepted_gaps(table))):
        if not places.overlapping(item):
            places.put(item)
    described = {path: (footer, table_info(files[path], footer)) for path, footer in footers.items()}
    ranges = ranges_of(described)
    unplaced: list[StoredRange] = []
    for translated in ranges.all:
        range_ = StoredRange.of(translated)
        overlapped = places.overlapping(range_)
        if not overlapped:
            places.put(range_)
        elif len(overlapped) == 1 and overlapped[0].offsets == range_.offsets and not overlapped[0].lost:
            places.put(_completed(overlapped[0], range_, files), instead_of=overlapped)
        else:
            unplaced.append(range_)
    for cluster, overlapped in list(_clusters(unplaced, places)):
        if _account_for(cluster, overlapped, files):
            for item in overlapped:
                places.remove(item)
            for item in cluster:
                places.put(item)
    return places.ranges()


def _clusters(
    others: Iterable[StoredRange], places: _RangePositions
) -> Iterator[tuple[list[StoredRange], list[StoredRange]]]:
    cluster: list[StoredRange] = []
    overlapped: dict[str, StoredRange] = {}
    for candidate in others:
        neighbours = {item.id: item for item in places.overlapping(candidate)}
        if cluster and (
            candidate.partition != cluster[-1].partition
            or not (neighbours.keys() & overlapped or _overlap(cluster[-1], candidate))
        ):
            yield cluster, list(overlapped.values())
            cluster, overlapped = [], {}
        cluster.append(candidate)
        overlapped |= neighbours
    if cluster:
        yield cluster, list(overlapped.values())


def _account_for(found: Sequence[StoredRange], known: Sequence[StoredRange], files: Mapping[str, TableFile]) -> bool:
    return (
        not any(path in files for item in known for path in item.paths)
        and not any(_overlap(*pair) for pair in pairwise(found))
        and joined(item.offsets for item in found) == joined(item.offsets for item in known)
        and sum(item.rows for item in found) == sum(item.expected for item in known)
    )


def _overlap(first: StoredRange, second: StoredRange) -> bool:
    return first.start_offset < second.end_offset and second.start_offset < first.end_offset


def _accepted_gaps(table: ArchiveTable) -> list[tuple[TranslatedRange, str | None]]:
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
    kept = [file for file in known.files if file.path in files]
    gone = [file for file in known.files if file.path not in files]
    ids = {file.id for file in known.files}
    made = [replace(file, id=_unused(file, ids)) for file in found.files if file.path not in known.paths]
    first, *rest = spread([*kept, *made], known.expected)
    first = replace(
        first,
        erased=first.erased + sum(file.erased for file in gone),
        lost=first.lost + sum(file.lost for file in gone),
        retired=first.retired + sum(file.retired for file in gone),
    )
    return replace(known, files=(first, *rest))


def _unused(file: StoredFile, ids: Container[str]) -> str:
    """Refill copies have the origin's id."""
    return file.id if file.id not in ids else ulid_in(file.path or "") or new_id()


class _RangePositions:
    def __init__(self) -> None:
        self._ranges: dict[int, list[StoredRange]] = {}

    def overlapping(self, one: StoredRange) -> list[StoredRange]:
        ranges = self._ranges.get(one.partition, [])
        first = bisect_left(ranges, one.start_offset, key=lambda range_: range_.end_offset - 1)
        last = bisect_left(ranges, one.end_offset, key=lambda range_: range_.start_offset)
        return ranges[first:last]

    def remove(self, one: StoredRange) -> None:
        self._ranges[one.partition].remove(one)

    def put(self, one: StoredRange, *, instead_of: Iterable[StoredRange] = ()) -> None:
        for item in instead_of:
            self.remove(item)
        ranges = self._ranges.setdefault(one.partition, [])
        ranges.insert(bisect_left(ranges, one.start_offset, key=lambda range_: range_.start_offset), one)

    def ranges(self) -> list[StoredRange]:
        return [item for _, ranges in sorted(self._ranges.items()) for item in ranges]
