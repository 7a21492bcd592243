"""Copies on this machine: files that the store refused, and cached manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from archiver.archive.plan_cache import PlanCache
from archiver.commit.table_rows import Offsets, TableRows
from archiver.errors import BadSegment, StorageError
from archiver.storage.formats import SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.row_columns import column_by_id
from archiver.storage.segment import RowRange, SegmentOrigin
from archiver.storage.spool import KEPT
from archiver.upkeep.erase.copies import Copies, Spans
from catalog.iceberg.archive_table import ArchiveTable
from schema_mapping import names
from schema_mapping.columns.fixed import OFFSET_ID


def remove_local_copies(
    spool: Path,
    table: ArchiveTable,
    erased: Spans,
    *,
    archived: Mapping[int, int],
    first_offsets: Mapping[int, int],
    formats: SegmentFormats,
) -> Copies:
    """Delete refused files in the spool with erased offsets.

    Only if each record is in the table, erased, or below `first_offsets`: it may be the only copy. Raises StorageError,
    and ReplayError for an unreadable table file.
    """
    deleted: int = 0
    left: list[str] = []
    folder = spool / KEPT
    rows = cache(lambda: TableRows(table, formats))
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        is_data = path.suffix[1:] in formats.extensions and path.name.startswith(f"{table.topic.topic}-")
        if not is_data or path.is_symlink() or not path.is_file():
            continue
        try:
            origin = _origin(path, formats)
            if origin is None or not _is_of(origin, table) or not _overlaps(origin, erased):
                continue
            offsets = _offsets(path, formats)
            offsets = offsets[offsets >= first_offsets.get(origin.partition, 0)]
        except StorageError:
            left.append(str(path))  # it may hold anything
            continue
        is_archived = origin.end_offset <= archived.get(origin.partition, 0)
        if not is_archived or not _are_known(offsets, origin.partition, erased, rows):
            left.append(str(path))
            continue
        path.unlink(missing_ok=True)
        deleted += 1
    return Copies(deleted=deleted, left=tuple(left))


def forget_plans(spool: Path) -> None:
    """Cached manifests have partition values of records."""
    plans = PlanCache.below(spool)
    if plans is not None:
        plans.forget_all()


def partition_columns(table: ArchiveTable) -> tuple[str, ...]:
    """Return key and value columns in any partition spec, current or old."""
    specs = table.iceberg.metadata.specs().values()
    columns = {table.schema.find_column_name(field.source_id) or "" for spec in specs for field in spec.fields}
    return tuple(sorted(name for name in columns if name.partition(".")[0] in {names.KEY, names.VAL}))


def _origin(path: Path, formats: SegmentFormats) -> SegmentOrigin | None:
    with formats.of_path(path.name).open(ObjectStore(), _uri(path)) as reader:
        return reader.metadata.origin


def _offsets(path: Path, formats: SegmentFormats) -> Offsets:
    with formats.of_path(path.name).open(ObjectStore(), _uri(path)) as reader:
        columns = [
            column
            for block in reader.blocks()
            for rows in reader.read(block, frozenset((OFFSET_ID,)))
            if (column := column_by_id(rows, OFFSET_ID)) is not None
        ]
        offsets = np.concatenate([np.empty(0, np.int64), *(column.to_numpy() for column in columns)])
        if len(offsets) != reader.metadata.rows:
            raise BadSegment("the file doesn't have an offset for each of its rows", file=str(path))
    return offsets


def _uri(path: Path) -> str:
    return f"file://{path.absolute()}"  # not escaped: `as_uri` would make another path of one with spaces


def _are_known(offsets: Offsets, partition: int, erased: Spans, rows: Callable[[], TableRows]) -> bool:
    edges = np.array(erased.get(partition, ()), np.int64).reshape(-1)
    outside = offsets[np.searchsorted(edges, offsets, side="right") % 2 == 0]
    if not len(outside):
        return True
    between = RowRange(partition=partition, start_offset=int(outside.min()), end_offset=int(outside.max()) + 1)
    return bool(np.isin(outside, rows().offsets(between)).all())


def _is_of(origin: SegmentOrigin, table: ArchiveTable) -> bool:
    return (origin.cluster_id, origin.topic) == (table.topic.cluster_id, table.topic.topic)


def _overlaps(origin: SegmentOrigin, erased: Spans) -> bool:
    spans = erased.get(origin.partition, ())
    return any(start < origin.end_offset and origin.start_offset < end for start, end in spans)
