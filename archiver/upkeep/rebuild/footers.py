"""What data files say about themselves, for many at once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from archiver.archive.table_files import TableFile
from archiver.storage.data_names import DataName
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentFormat, SegmentMetadata
from catalog.model import DataFileInfo, TranslatedRange, new_id

READERS: Final = 16
NO_EPOCH: Final = -1


def read_footers(files: Mapping[str, SegmentFormat], objects: ObjectStore) -> dict[str, SegmentMetadata]:
    """The footer of each file, by path, as the formats are; raises the leaves of StorageError."""

    def read(path: str) -> SegmentMetadata:
        with files[path].open(objects, path) as reader:
            return reader.metadata

    with ThreadPoolExecutor(READERS, thread_name_prefix="footers") as pool:
        return dict(zip(files, pool.map(read, files), strict=True))


def range_of(path: str, footer: SegmentMetadata, file: DataFileInfo) -> TranslatedRange | None:
    """The range that a file covers, None where it doesn't say; its leader epoch is in the rows only."""
    if footer.origin is None or footer.schema_version is None:
        return None
    return TranslatedRange(
        id=range_id(path),
        topic=footer.origin.topic,
        partition=footer.origin.partition,
        start_offset=footer.origin.start_offset,
        end_offset=footer.origin.end_offset,
        schema_version=footer.schema_version,
        leader_epoch=NO_EPOCH,
        file=file,
        created_ms=0,
    )


def range_id(path: str) -> str:
    """The ULID in a file's name, else a new one."""
    found = DataName.of(path.rpartition("/")[2])
    return new_id() if found is None else found.ulid


def table_info(file: TableFile, footer: SegmentMetadata) -> DataFileInfo:
    """A file of the table as its manifest and footer describe it."""
    return DataFileInfo(
        path=file.path,
        size_bytes=file.size_bytes,
        rows=file.rows,
        partition_value=file.ordinal,
        digest=footer.digest,
        format=file.format,
    )
