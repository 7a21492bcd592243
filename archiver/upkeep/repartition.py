"""Give a topic's table the partitioning that the configuration names. Files that exist keep theirs."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.config import Config
from archiver.errors import ConfigError
from archiver.upkeep.archived_topic import find_archived
from catalog.errors import UnfitPartitioning
from catalog.iceberg.partition_spec import partitioning_for, partitioning_of
from catalog.iceberg.repartition import is_partitioned
from catalog.iceberg.table_catalog import TableCatalog
from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartitioned:
    """A table's partitioning before and after: transforms and field ids of their columns.

    `was_changed` is false for a dry run, and where there was nothing to change.
    """

    topic: str
    table: str
    before: str
    after: str
    was_changed: bool


def repartition(config: Config, topic: str, *, dry_run: bool = False) -> Repartitioned:
    """Change the table's partition spec for the files to come, in one commit of metadata alone.

    Ranges that are staged keep the partitions that they were written for. Raises ConfigError where the table can't be
    partitioned as configured, and the leaves of RegistryError and TableError.
    """
    with Registry(config.registry.dsn) as registry, TableCatalog(config.catalog) as catalog:
        archived = find_archived(config, topic, registry=registry, catalog=catalog)
        table, terms = archived.table, archived.config.partition_terms
        try:
            wanted = partitioning_for(
                terms, table.schema, table.partition_source, earlier=reversed(table.iceberg.metadata.schemas)
            )
        except UnfitPartitioning as error:
            raise ConfigError(
                error.message, key=f"topics.{topic}.partition_by", table=table.topic.table, **error.context
            ) from error
        before = partitioning_of(table.iceberg.spec())
        is_new = not is_partitioned(table, wanted)
        if is_new and not dry_run:
            table = catalog.repartition(table, wanted)
            registry.last_known.remember_table(archived.topic, catalog.known(table))
        return Repartitioned(
            topic=topic,
            table=table.topic.table,
            before=before.by or "nothing",
            after=wanted.by,
            was_changed=is_new and not dry_run,
        )
