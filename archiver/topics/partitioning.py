"""Compare the configured partitioning of a table with the actual one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from archiver.config.model import TopicConfig
from archiver.errors import ConfigError
from catalog.errors import UnfitPartitioning
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.partition_spec import partitioning_for, same_partitions

if TYPE_CHECKING:
    from schema_mapping.row import PartitionSource

NEW_TABLES: Final[PartitionSource] = "flat"
"""The partition source of new tables, where the configuration names none (docs/adr/0039-flat-by-default.md)."""


def partition_source(config: TopicConfig, table: ArchiveTable | None) -> PartitionSource:
    return config.partition_source or (NEW_TABLES if table is None else table.partition_source)


def check_partitioning(config: TopicConfig, table: ArchiveTable) -> None:
    """Raises PartitioningChanged if another engine changed it, else ConfigError."""
    source = partition_source(config, table)
    if source != table.partition_source:
        raise ConfigError(
            f"The table was made with partition_source = {table.partition_source!r}, which can't be changed; set it "
            "back",
            key=f"topics.{config.name}.partition_source",
            table=config.table,
        )
    current = table.partitioning
    try:
        asked = partitioning_for(
            config.partition_terms,
            table.schema,
            source,
            earlier=reversed(table.iceberg.metadata.schemas),
            current=current,
        )
    except UnfitPartitioning as error:
        raise unfit(config, error) from error
    if not same_partitions(asked, current):
        raise ConfigError(
            f"The table is partitioned by {current.by}, and partition_by means {asked.by} (transforms and field ids of "
            "their columns): set it back, or run `archiver repartition`",
            key=f"topics.{config.name}.partition_by",
            table=config.table,
        )


def unfit(config: TopicConfig, error: UnfitPartitioning) -> ConfigError:
    return ConfigError(error.message, key=f"topics.{config.name}.partition_by", table=config.table, **error.context)
