"""Whether a topic's table has what was archived: told apart are a table set back and rows that others removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from archiver.commit.missing_rows import find_holes, named
from archiver.storage.formats import FORMATS, SegmentFormats
from catalog.errors import RolledBack, RowsRemoved, TableError
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import check_lineage, head_of, rolled_back
from catalog.model import PartitionOffset, TopicRow
from catalog.ranges.holes import Hole
from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a look at a table found: the rows that it lacks, and the error that says why; both empty where it is whole.

    `table` is None where there is none yet.
    """

    table: ArchiveTable | None = None
    holes: tuple[Hole, ...] = ()
    error: TableError | None = None


def standing(
    topic: TopicRow,
    registry: Registry,
    load: Callable[[], ArchiveTable | None],
    *,
    known: ArchiveTable | None = None,
    formats: SegmentFormats = FORMATS,
) -> Standing:
    """Look at the table; `known` is it as loaded not long ago, with its history.

    Raises the leaves of StorageError, RegistryError and TableError, and ReplayError.
    """
    table = known or load()
    if table is None:
        return Standing()
    ends = registry.files.committed_ends(topic)
    if _is_less(table, ends):
        table = load() or table  # it may have moved on since it was loaded
    is_back = _is_less(table, ends)
    told = ""
    try:
        check_lineage(table)
    except RolledBack as error:
        is_back, told = True, str(error.context["missing"])
    holes = find_holes(topic, table, registry, load, is_back=is_back, formats=formats)
    if is_back:
        head = head_of(table.iceberg.metadata)
        return Standing(table=table, holes=holes, error=rolled_back(table, missing=named(holes) or told, head=head))
    return Standing(table=table, holes=holes, error=_removed(table, holes) if holes else None)


def _is_less(table: ArchiveTable, ends: Mapping[int, PartitionOffset]) -> bool:
    """Whether a table's offsets are less than what was committed to it: its whole metadata was set back."""
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
