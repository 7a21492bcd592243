"""Read the footers of many data files, and the ranges they name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from archiver.archive.table_files import TableFile
from archiver.errors import StorageError
from archiver.storage.file_names import DataFileName
from archiver.storage.journal import TableJournal
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentFormat, SegmentMetadata
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.partition_spec import spec_by
from catalog.iceberg.partitions import placed
from catalog.model import DataFileInfo, TranslatedRange, file_name, new_id
from catalog.offset_range import OffsetRange
from catalog.ranges.spans import Cover
from catalog.ranges.stored_ranges import StoredRange

READERS: Final = 16
NO_EPOCH: Final = -1


def read_footers(files: Mapping[str, SegmentFormat], objects: ObjectStore) -> dict[str, SegmentMetadata]:
    """Raise StorageError."""

    def read(path: str) -> SegmentMetadata:
        with files[path].open(objects, path) as reader:
            return reader.metadata

    with ThreadPoolExecutor(READERS, thread_name_prefix="footers") as pool:
        return dict(zip(files, pool.map(read, files), strict=True))


def without_journaled(
    footers: Mapping[str, SegmentMetadata], journal: TableJournal, ranges: Iterable[StoredRange]
) -> dict[str, SegmentMetadata]:
    """Leave out journaled files with offsets in `ranges`: another engine rolled the table back to them.

    Files of rewrites that no range names stay: a journal configured after the first commits has such files. Raises
    StorageError.
    """
    journaled = journal.files_ever_in_table({file_name(path) for path in footers}) if footers else set()
    cover = Cover(OffsetRange.half_open(stored.partition, *stored.offsets) for stored in ranges)

    def belongs(path: str, footer: SegmentMetadata) -> bool:
        origin = footer.origin
        if origin is None or file_name(path) not in journaled:
            return False
        return not cover.beyond([OffsetRange.half_open(origin.partition, origin.start_offset, origin.end_offset)])

    return {path: footer for path, footer in footers.items() if not belongs(path, footer)}


def range_of(path: str, footer: SegmentMetadata, file: DataFileInfo) -> TranslatedRange | None:
    """The leader epoch is unknown: only rows have it."""
    if footer.origin is None or footer.schema_version is None:
        return None
    return TranslatedRange(
        id=footer.origin.range_id or range_id(path),
        topic=footer.origin.topic,
        partition=footer.origin.partition,
        start_offset=footer.origin.start_offset,
        end_offset=footer.origin.end_offset,
        schema_version=footer.schema_version,
        leader_epoch=NO_EPOCH,
        files=(file,),
        created_ms=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRanges:
    """`partial` ranges lack files."""

    whole: tuple[TranslatedRange, ...]
    partial: tuple[TranslatedRange, ...]

    @property
    def all(self) -> tuple[TranslatedRange, ...]:
        return tuple(sorted((*self.whole, *self.partial), key=_place))


def ranges_of(files: Mapping[str, tuple[SegmentMetadata, DataFileInfo]]) -> FoundRanges:
    groups: dict[tuple[object, ...], list[TranslatedRange]] = defaultdict(list)
    sizes: dict[tuple[object, ...], int] = {}
    for path, (footer, file) in sorted(files.items()):
        range_ = range_of(path, footer, file)
        if range_ is not None and footer.origin is not None:
            key = (range_.partition, range_.start_offset, range_.end_offset, footer.origin.range_id or path)
            groups[key].append(range_)
            sizes[key] = footer.origin.files
    whole: list[TranslatedRange] = []
    partial: list[TranslatedRange] = []
    for start, parts in groups.items():
        together = replace(parts[0], files=tuple(file for part in parts for file in part.files))
        (whole if len(parts) == sizes[start] else partial).append(together)
    return FoundRanges(whole=tuple(sorted(whole, key=_place)), partial=tuple(sorted(partial, key=_place)))


def _place(one: TranslatedRange) -> tuple[int, int, str]:
    return one.partition, one.start_offset, one.id


def range_id(path: str) -> str:
    name = DataFileName.parse(path.rpartition("/")[2])
    return new_id() if name is None else name.ulid


def table_info(file: TableFile, footer: SegmentMetadata) -> DataFileInfo:
    """Raises StorageError for a file without partition."""
    if footer.place is None and not file.partition_values:
        raise StorageError("the file has no time partition: rewrite it with an engine first", file=file.path)
    return DataFileInfo(
        path=file.path,
        size_bytes=file.size_bytes,
        rows=file.rows,
        partition=footer.place or file.time_partition,
        digest=footer.digest,
        format=file.format,
        recognition=footer.recognition,
    )


def place_in_table(info: DataFileInfo, footer: SegmentMetadata, table: ArchiveTable) -> DataFileInfo | None:
    """Return None if the table has no such partition."""
    metadata, partition = table.iceberg.metadata, footer.place
    if partition is None:
        partition = placed(metadata, info)
    elif partition.by is None or spec_by(metadata, partition.by) is None:
        return None
    return None if partition is None else replace(info, partition=partition)
