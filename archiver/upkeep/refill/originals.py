"""Find files that the table lost and the store still has."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from archiver.errors import BadSegment, ObjectMissing
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from catalog.model import DataFileInfo, TranslatedRange

LOOKS_AT_ONCE: Final = 16


def originals(
    ranges: Iterable[TranslatedRange], objects: ObjectStore, formats: SegmentFormats, table_properties: dict[str, str]
) -> dict[str, tuple[DataFileInfo, ...]]:
    """Return existing files by range id that match the registry in size, rows and digest.

    Damaged files count as gone. Raises StorageError otherwise: a store that doesn't answer proves nothing.
    """
    recorded = [(range_.id, file) for range_ in ranges for file in range_.files]

    def look(file: DataFileInfo) -> DataFileInfo | None:
        try:
            return _as_described(file, objects, formats, table_properties)
        except (ObjectMissing, BadSegment):
            return None

    with ThreadPoolExecutor(LOOKS_AT_ONCE, thread_name_prefix="originals") as pool:
        pairs = zip(recorded, pool.map(look, [file for _, file in recorded]), strict=True)
        existing: dict[str, tuple[DataFileInfo, ...]] = {}
        for (range_id, _), file in pairs:
            if file is not None:
                existing[range_id] = (*existing.get(range_id, ()), file)
    return existing


def _as_described(
    file: DataFileInfo, objects: ObjectStore, formats: SegmentFormats, table_properties: dict[str, str]
) -> DataFileInfo | None:
    if objects.size(file.path) != file.size_bytes:
        return None
    format_ = formats.named(file.format, file.path)
    with format_.open(objects, file.path) as reader:
        about = reader.metadata
    if about.rows != file.rows or (None not in (about.digest, file.digest) and about.digest != file.digest):
        return None
    if file.lower_bounds:
        return file
    # A rebuilt registry has no column statistics, and no values of columns that the table is partitioned by.
    described = format_.describe(objects, file.path, table_properties=table_properties)
    return replace(
        described,
        raw_values=file.raw_values,
        min_timestamp=file.min_timestamp,
        max_timestamp=file.max_timestamp,
        digest=file.digest or about.digest,
        recognition=file.recognition or about.recognition,
        partition=about.place if file.partition.values is None and about.place else file.partition,
    )
