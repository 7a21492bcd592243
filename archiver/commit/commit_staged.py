"""Commit staged ranges: check objects, commit once, confirm. Each step can be repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from archiver.audit.trail import AuditTrail
from archiver.commit.presence import Presence
from archiver.fault_points import FaultPoint, pass_point
from archiver.storage.journal import TableJournal
from archiver.storage.objects import ObjectStore
from catalog.errors import CatalogUnreachable, PartitionAhead
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Committed, MovedPartition, OffsetsMoved, Unresolved
from catalog.iceberg.schema_change import SchemaChange
from catalog.iceberg.settle import Settled
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow, TranslatedRange, new_id
from catalog.registry import Registry

ATTEMPTS = 5
"""How often ranges are settled again because the table moved on before their commit."""

_FRESH_SECONDS = 5.0
"""The greatest age of the table at the first attempt. The catalog accepts a commit on outdated properties, such as one
that a person has repaired.
"""

OnLanded = Callable[[Sequence[TranslatedRange]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTopic:
    topic: TopicRow
    table: ArchiveTable
    change: SchemaChange
    journal: TableJournal


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReport:
    """`ahead` is why partitions stay staged."""

    is_new: bool
    ahead: Mapping[int, PartitionAhead] = field(default_factory=dict)


def commit_pending(opened: StagedTopic, registry: Registry, catalog: TableCatalog, landed: OnLanded) -> CommitReport:
    """Commit every staged range, or find that it can never be committed.

    Skips partitions ahead of the table. `landed` gets ranges in the table. Raises CatalogUnreachable (retryable) if the
    outcome is unknown, TableMissing if the table was dropped or recreated.
    """
    topic, seen = opened.topic, opened.table

    def load() -> ArchiveTable:
        nonlocal seen
        seen = catalog.reload(opened.table)
        return seen

    objects = ObjectStore.of_table(opened.table.iceberg)
    presence = Presence(topic=topic, objects=objects, missing=registry.missing, load=load)
    presence.take_up()
    moved: dict[int, MovedPartition] = {}
    for _ in range(ATTEMPTS):
        staged = presence.check(settle_staged(topic, registry, catalog, opened.journal, load=load, landed=landed))
        ahead = {
            staged_range.partition: _ahead(topic, moved[staged_range.partition])
            for staged_range in staged
            if staged_range.partition in moved
        }
        waiting = tuple(staged_range for staged_range in staged if staged_range.partition not in ahead)
        if not waiting:
            return CommitReport(is_new=False, ahead=ahead)
        pass_point(FaultPoint.BEFORE_COMMIT)
        is_fresh = seen is not opened.table and seen.age < _FRESH_SECONDS
        match catalog.commit(seen, waiting, change=opened.change, commit_id=new_id(), is_fresh=is_fresh):
            case Committed(commit_id=commit_id, snapshot_id=snapshot_id):
                pass_point(FaultPoint.AFTER_COMMIT)
                opened.journal.keep_commit(commit_id, waiting)
                AuditTrail(topic=topic, journal=opened.journal, registry=registry).appended(
                    commit_id, snapshot_id, waiting
                )
                registry.files.confirm(topic, [staged_range.id for staged_range in waiting], commit_id=commit_id)
                pass_point(FaultPoint.AFTER_CONFIRM)
                landed(waiting)
                return CommitReport(is_new=True, ahead=ahead)
            case OffsetsMoved(partitions=partitions):
                moved |= {
                    partition.partition: partition for partition in partitions if partition.found < partition.expected
                }
            case Unresolved(reason=reason):
                raise CatalogUnreachable(
                    "The catalog doesn't say what became of a commit; its files stay staged, the next run finds out",
                    table=topic.table,
                    reason=reason,
                )
    raise CatalogUnreachable(
        "Others commit to the table faster than this job can; the files stay staged for the next run", table=topic.table
    )


def _ahead(topic: TopicRow, moved: MovedPartition) -> PartitionAhead:
    return PartitionAhead(
        "what is staged of a partition begins after what the table has of it; it stays staged, the other partitions go"
        " on. If this doesn't pass: somebody changed the table's property archiver.offsets; set the partition's offset"
        " in it again to what an earlier metadata file of the table has",
        table=topic.table,
        partition=moved.partition,
        staged_from=moved.expected,
        table_has_until=moved.found,
    )


def settle_staged(
    topic: TopicRow,
    registry: Registry,
    catalog: TableCatalog,
    journal: TableJournal,
    *,
    load: Callable[[], ArchiveTable],
    landed: OnLanded = lambda _: None,
    after_rollback: bool = False,
) -> tuple[TranslatedRange, ...]:
    """Record the outcome of pending ranges; return the ranges that still wait.

    With `after_rollback` ranges once in the table count as landed. Raises RolledBack if the table was rolled back.
    """
    pending = registry.files.pending(topic)  # before the table: so the table shows what became of each of them
    if not pending:
        return ()
    settled: Settled = catalog.settle(load(), pending, after_rollback=after_rollback)
    journal.keep_settled(settled)
    AuditTrail(topic=topic, journal=journal, registry=registry).settled(settled)
    registry.files.record(topic, settled)
    if settled.landed:
        landed([item.range for item in settled.landed])
    return settled.waiting
