"""Copies on this machine: files that the store denied, and what was read from manifests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from archiver.archive.plan_cache import PlanCache
from archiver.errors import StorageError
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentOrigin
from archiver.storage.spool import KEPT
from archiver.upkeep.erase.copies import Copies, Spans
from catalog.iceberg.archive_table import ArchiveTable
from schema_mapping import names


def remove_local_copies(
    spool: Path, table: ArchiveTable, erased: Spans, *, archived: Mapping[int, int], formats: SegmentFormats
) -> Copies:
    """Delete the files of a spool that the store denied and that may have erased offsets.

    Those with records from the `archived` ends on may be the only copy of these, and are left.
    """
    deleted: int = 0
    left: list[str] = []
    folder = spool / KEPT
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        is_data = path.suffix[1:] in formats.extensions and path.name.startswith(f"{table.topic.topic}-")
        if not is_data or path.is_symlink() or not path.is_file():
            continue
        try:
            origin = _origin(path, formats)
        except StorageError:
            left.append(str(path))  # it may hold anything
            continue
        if origin is None or not _is_of(origin, table) or not _overlaps(origin, erased):
            continue
        if origin.end_offset > archived.get(origin.partition, 0):
            left.append(str(path))
            continue
        path.unlink(missing_ok=True)
        deleted += 1
    return Copies(deleted=deleted, left=tuple(left))


def forget_plans(spool: Path) -> None:
    """Remove what was read from manifests: it has the partitions of files, and so values of their records."""
    cache = PlanCache.below(spool)
    if cache is not None:
        cache.forget_all()


def partition_columns(table: ArchiveTable) -> tuple[str, ...]:
    """The columns of keys and values that the table is partitioned by, or was."""
    specs = table.iceberg.metadata.specs().values()
    found = {table.schema.find_column_name(field.source_id) or "" for spec in specs for field in spec.fields}
    return tuple(sorted(each for each in found if each.partition(".")[0] in {names.KEY, names.VAL}))


def _origin(path: Path, formats: SegmentFormats) -> SegmentOrigin | None:
    with formats.of_path(path.name).open(ObjectStore(), path.as_uri()) as reader:
        return reader.metadata.origin


def _is_of(origin: SegmentOrigin, table: ArchiveTable) -> bool:
    return (origin.cluster_id, origin.topic) == (table.topic.cluster_id, table.topic.topic)


def _overlaps(origin: SegmentOrigin, erased: Spans) -> bool:
    spans = erased.get(origin.partition, ())
    return any(start < origin.end_offset and origin.start_offset < end for start, end in spans)
