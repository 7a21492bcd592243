"""Changes a table to the configured partitioning, for future files. A compaction moves old ones."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.audit.acts import RepartitionedAct
from archiver.audit.trail import AuditTrail
from archiver.config import Config
from archiver.errors import ConfigError
from archiver.fault_points import FaultPoint, pass_point
from archiver.storage.journal import Journal
from archiver.upkeep.archived_topic import find_archived
from catalog.errors import UnfitPartitioning
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.partition_spec import partitioning_for, partitioning_of
from catalog.iceberg.repartition import changes_of, is_partitioned
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import new_id
from catalog.partitioning import Partitioning
from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartitioned:
    """`before` and `after` are transforms and field ids.

    Not `was_changed` for a dry run, without a difference, or if another process changed it.
    """

    topic: str
    table: str
    before: str
    after: str
    was_changed: bool


def repartition(config: Config, topic: str, *, dry_run: bool = False) -> Repartitioned:
    """Change the partition spec in one metadata commit; staged ranges keep theirs.

    Raises ConfigError if the table can't be partitioned so, RegistryError and TableError.
    """
    with Registry(config.registry.dsn) as registry, TableCatalog(config.catalog) as catalog:
        archived = find_archived(config, topic, registry=registry, catalog=catalog, dry_run=dry_run)
        table, terms = archived.table, archived.config.partition_terms
        trail = AuditTrail(topic=archived.topic, journal=Journal.of(config).of_table(table), registry=registry)
        if not dry_run:
            trail.begin(table=table, has_lease=False, is_held=archived.config.hold)
        try:
            partitioning = partitioning_for(
                terms,
                table.schema,
                table.partition_source,
                earlier=reversed(table.iceberg.metadata.schemas),
                current=partitioning_of(table.iceberg.spec()),
            )
        except UnfitPartitioning as error:
            raise ConfigError(
                error.message, key=f"topics.{topic}.partition_by", table=table.topic.table, **error.context
            ) from error
        before = _told(table)
        was_changed = False
        if not dry_run and not is_partitioned(table, partitioning):
            table, was_changed = _changed(table, partitioning, catalog, trail)
            registry.last_known.remember_table(archived.topic, catalog.known(table))
        return Repartitioned(
            topic=topic, table=table.topic.table, before=before, after=partitioning.by, was_changed=was_changed
        )


def _changed(
    table: ArchiveTable, wanted: Partitioning, catalog: TableCatalog, trail: AuditTrail
) -> tuple[ArchiveTable, bool]:
    act = RepartitionedAct(commit_id=new_id(), before=_told(table), after=wanted.by)

    def intend(found: ArchiveTable) -> None:
        nonlocal act
        act = RepartitionedAct(commit_id=act.commit_id, before=_told(found), after=wanted.by)
        trail.intend(act, parent=found.iceberg.metadata.default_spec_id)
        pass_point(FaultPoint.BEFORE_COMMIT)

    table = catalog.repartition(table, wanted, change_id=act.commit_id, attempted=intend)
    if act.commit_id not in changes_of(table):
        trail.withdraw(act)
        return table, False
    pass_point(FaultPoint.AFTER_COMMIT)
    trail.record(act)
    return table, True


def _told(table: ArchiveTable) -> str:
    return partitioning_of(table.iceberg.spec()).by or "nothing"
