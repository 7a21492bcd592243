"""Check that a table has what was archived; distinguish rollbacks from removed or changed rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from archiver.commit.check_rows import check_rows
from archiver.commit.known_rows import named
from archiver.commit.registry_lag import lacking_rewrites, rewritten_since
from catalog.errors import RegistryBehind, RolledBack, RowsAltered, RowsRemoved, TableError
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import check_lineage, head_of, rolled_back
from catalog.model import PartitionOffset, TopicRow
from catalog.ranges.holes import AlteredRange, Checked, Hole
from catalog.ranges.spans import joined
from catalog.registry import Registry

if TYPE_CHECKING:
    from archiver.storage.formats import SegmentFormats

NAMED_STATEMENTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCheck:
    """`has_uncompared` includes rows beyond the archived end, `uncompared_rows` doesn't.

    Nothing before the snapshot `unseen_before` was checked.
    """

    table: ArchiveTable | None = None
    holes: tuple[Hole, ...] = ()
    altered: tuple[AlteredRange, ...] = ()
    uncompared_rows: int = 0
    has_uncompared: bool = False
    unseen_before: int | None = None
    error: TableError | RegistryBehind | None = None


def check_archive(
    topic: TopicRow,
    registry: Registry,
    load: Callable[[], ArchiveTable | None],
    *,
    known: ArchiveTable | None = None,
    formats: SegmentFormats | None = None,
) -> TableCheck:
    """Raise ReplayError, StorageError, RegistryError and TableError.

    Doesn't read data files for altered rows.
    """
    table = known or load()
    if table is None:
        return TableCheck()
    ends = registry.files.committed_ends(topic)
    if _is_less(table, ends):
        table = load() or table  # it may have changed since it was loaded
    is_back = _is_less(table, ends)
    changes = ""
    try:
        check_lineage(table)
    except RolledBack as error:
        is_back, changes = True, str(error.context["missing"])
    checked = check_rows(topic, table, registry, load, is_back=is_back, formats=formats)
    reason: TableError | RegistryBehind | None = None
    if is_back:
        head = head_of(table.iceberg.metadata)
        reason = rolled_back(table, missing=named(checked.holes) or changes, head=head)
    elif checked.holes:
        rewrites = lacking_rewrites(table, registry)
        reason = (
            rewritten_since(table, rewrites, missing=named(checked.holes)) if rewrites else _removed(table, checked)
        )
    elif checked.altered:
        reason = rows_altered(table, checked)
    return TableCheck(
        table=table,
        holes=checked.holes,
        altered=checked.altered,
        uncompared_rows=checked.uncompared_rows,
        has_uncompared=bool(checked.uncompared),
        unseen_before=checked.unseen_before,
        error=reason,
    )


def _is_less(table: ArchiveTable, ends: Mapping[int, PartitionOffset]) -> bool:
    """True if the table's whole metadata was rolled back."""
    offsets = table.offsets
    return any(
        partition not in offsets or offsets[partition].next_offset < end.next_offset for partition, end in ends.items()
    )


def _removed(table: ArchiveTable, found: Checked) -> RowsRemoved:
    beside: dict[str, Any] = {"altered": named(found.altered)} if found.altered else {}
    beside |= {"not_compared_yet": found.uncompared_rows} if found.uncompared_rows else {}
    return RowsRemoved(
        "others took archived rows out of the table (a DELETE, an overwrite, a compaction that lost some); archiving"
        " goes on: `archiver refill TOPIC` brings them back. Only if they were removed on purpose,"
        " note them as erased with --accept-removed: then their old files are deleted",
        topic=table.topic.topic,
        table=table.topic.table,
        missing=named(found.holes),
        **beside,
        by=_others(table),
    )


def rows_altered(table: ArchiveTable, found: Checked) -> RowsAltered:
    statements = _deletes(table.topic.table, found.altered)
    more = "" if len(statements) <= NAMED_STATEMENTS else f"; and {len(statements) - NAMED_STATEMENTS} more"
    beside: dict[str, Any] = {"not_compared_yet": found.uncompared_rows} if found.uncompared_rows else {}
    return RowsAltered(
        "others changed archived rows, or added rows with their offsets (an UPDATE, a MERGE, an INSERT, a compaction"
        " without a column): a replay doesn't give what Kafka gave. Archiving goes on. To have the archived records"
        f" again, first keep the table as it is now: ALTER TABLE {table.topic.table} CREATE TAG before_refill (in"
        " Spark). Records that neither old files nor Kafka have any more don't come back. Then take these rows out,"
        " with all of their offsets, and run `archiver refill TOPIC`: "
        + "; ".join(statements[:NAMED_STATEMENTS])
        + more,
        topic=table.topic.topic,
        table=table.topic.table,
        altered=named(found.altered),
        **beside,
        by=_others(table),
    )


def _others(table: ArchiveTable) -> list[str]:
    from archiver.commit.snapshot_effects import done_by_others

    return list(done_by_others(table.iceberg))


def _deletes(table: str, altered: tuple[AlteredRange, ...]) -> list[str]:
    return [
        f"DELETE FROM {table} WHERE kafka.partition = {partition}"  # noqa: S608 - nobody here runs it
        f" AND kafka.offset >= {start} AND kafka.offset < {end}"
        for partition, group in groupby(altered, key=lambda range_: range_.partition)
        for start, end in joined((item.start_offset, item.end_offset) for item in group)
    ]
