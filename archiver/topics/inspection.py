"""Inspect a topic's partitions for a plan."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from archiver.kafka.broker import BrokerClient, PartitionDescription
from archiver.topics.log_bounds import LogBounds, no_leaders
from archiver.topics.opening import OpenedTopic
from archiver.topics.partition_inspector import PartitionInspector
from archiver.topics.seen_partition import SeenPartition, furthest
from catalog.errors import CatalogUnreachable
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import check_lineage
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import PartitionOffset, TranslatedRange
from catalog.registry import Registry
from catalog.registry.missing_objects import first_offsets
from schema_mapping.errors import ContextError

FRESH_SECONDS = 60.0
"""How old the table may be that a run's first plan is made on."""

_ELECTION_TRIES = 5
_ELECTION_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTopic:
    """`unknown` partitions can't be judged now.

    `table_offsets` has the start of partitions that lost their first files.
    """

    table: ArchiveTable
    partitions: tuple[SeenPartition, ...]
    unknown: Mapping[int, ContextError]
    table_offsets: dict[int, PartitionOffset]

    @property
    def known(self) -> dict[int, PartitionOffset]:
        return {partition.partition: partition.known for partition in self.partitions if partition.known is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedOffsets:
    """The ends of partitions in the table or staged.

    `table_offsets` has the start of a partition that lost its first file. `missing` ranges lost their files.
    """

    table: ArchiveTable
    table_offsets: dict[int, PartitionOffset]
    known: dict[int, PartitionOffset]
    missing: tuple[TranslatedRange, ...]


def archived_offsets(
    opened: OpenedTopic, *, registry: Registry, catalog: TableCatalog, is_as_opened: bool = False
) -> ArchivedOffsets:
    """With `is_as_opened`, a recently loaded table is reused.

    Raises RegistryError and CatalogError: RolledBack if the table was rolled back, TableMissing if it was dropped
    or recreated.
    """
    topic = opened.topic
    staged = registry.files.staged_ends(topic)  # first: what is committed in between is then in the table
    try:
        is_fresh = is_as_opened and not opened.table.is_recalled and opened.table.age < FRESH_SECONDS
        table = opened.table if is_fresh else catalog.reload(opened.table)
    except CatalogUnreachable:
        # Archiving goes on: the registry knows what was accepted, committed or not, since the table was loaded.
        table, staged = opened.table, registry.files.accepted_ends(topic)
    if not table.is_recalled:
        check_lineage(table)
    missing = registry.missing.load(topic, table_offsets=table.offsets)
    table_offsets = table.offsets | first_offsets(missing, table.offsets, staged)
    return ArchivedOffsets(
        table=table, table_offsets=table_offsets, known=furthest(table_offsets, staged), missing=tuple(missing)
    )


def inspect_partitions(
    inspector: PartitionInspector, archived: ArchivedOffsets, *, bounds: LogBounds | None, without: Collection[int]
) -> SeenTopic:
    """Raises SourceError and RegistryError.

    `bounds` were read after `archived`, None if not read.
    """
    topic, brokers, positions = inspector.name, inspector.brokers, archived.known
    described = _described(topic, brokers, positions, is_fresh=bounds is not None)
    unknown: dict[int, ContextError] = dict(no_leaders(topic, described, positions))
    inspected = {partition: description for partition, description in described.items() if partition not in without}
    led = sorted(inspected.keys() - unknown.keys())
    if bounds is None or sorted(bounds.starts) != led:
        bounds = LogBounds.ask(topic, led, positions, brokers)
    partitions = inspector.inspect(bounds, inspected, positions, archived.missing)
    unknown |= {number: partition.problem for number, partition in partitions.items() if partition.problem is not None}
    return SeenTopic(
        table=archived.table,
        partitions=tuple(partition.seen for partition in partitions.values() if partition.problem is None),
        unknown={number: error for number, error in unknown.items() if number in inspected},
        table_offsets=archived.table_offsets,
    )


def _described(
    topic: str, brokers: BrokerClient, known: Mapping[int, PartitionOffset], *, is_fresh: bool
) -> Mapping[int, PartitionDescription]:
    """`is_fresh` if the topic was just described. Waits for missing leaders."""
    if is_fresh:
        described = brokers.described(topic).partitions
        if not no_leaders(topic, described, known):
            return described
    for _ in range(_ELECTION_TRIES):
        described = brokers.describe([topic])[topic].partitions
        if not no_leaders(topic, described, known):
            break
        time.sleep(_ELECTION_PAUSE_SECONDS)
    return described
