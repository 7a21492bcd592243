"""Check that a topic's table still has what was archived.

It tells a table that was set back from one that others removed rows from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from archiver.commit.find_holes import find_holes, named
from archiver.storage.formats import FORMATS, SegmentFormats
from catalog.errors import RolledBack, RowsRemoved, TableError
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import check_lineage, head_of, rolled_back
from catalog.model import PartitionOffset, TopicRow
from catalog.ranges.holes import Hole
from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCheck:
    """The result of a check: the rows that the table lacks, and the error that says why.

    Both are empty for a complete table. `table` is None where there is none yet.
    """

    table: ArchiveTable | None = None
    holes: tuple[Hole, ...] = ()
    error: TableError | None = None


def check_archive(
    topic: TopicRow,
    registry: Registry,
    load: Callable[[], ArchiveTable | None],
    *,
    known: ArchiveTable | None = None,
    formats: SegmentFormats = FORMATS,
) -> TableCheck:
    """Check the table. `known` is the table as it was loaded a short time ago, with its history.

    Raises the leaves of StorageError, RegistryError and TableError, and ReplayError.
    """
    table = known or load()
    if table is None:
        return TableCheck()
    ends = registry.files.committed_ends(topic)
    if _is_less(table, ends):
        table = load() or table  # it may have changed since it was loaded
    is_back = _is_less(table, ends)
    told = ""
    try:
        check_lineage(table)
    except RolledBack as error:
        is_back, told = True, str(error.context["missing"])
    holes = find_holes(topic, table, registry, load, is_back=is_back, formats=formats)
    if is_back:
        head = head_of(table.iceberg.metadata)
        return TableCheck(table=table, holes=holes, error=rolled_back(table, missing=named(holes) or told, head=head))
    return TableCheck(table=table, holes=holes, error=_removed(table, holes) if holes else None)


def _is_less(table: ArchiveTable, ends: Mapping[int, PartitionOffset]) -> bool:
    """Whether the table's offsets are lower than those of the committed ranges: its whole metadata was set back."""
    offsets = table.offsets
    return any(
        partition not in offsets or offsets[partition].next_offset < end.next_offset for partition, end in ends.items()
    )


def _removed(table: ArchiveTable, holes: tuple[Hole, ...]) -> RowsRemoved:
    return RowsRemoved(
        "others took archived rows out of the table (a DELETE, an overwrite, a compaction that lost some); archiving"
        " goes on: `archiver refill TOPIC` brings them back, with --accept-removed they are noted as erased on purpose",
        topic=table.topic.topic,
        table=table.topic.table,
        missing=named(holes),
    )
