"""What is known of a topic's partitions now, asked of table, registry and brokers, for the plan to decide on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self

from archiver.errors import LeaderUnavailable
from archiver.ingest.broker import BrokerClient, EpochEnd, PartitionDescription
from archiver.ingest.plan import PartitionView, furthest
from archiver.ingest.topic_table import TopicTable
from archiver.staged.presence import missing_files
from catalog.archive_table import ArchiveTable
from catalog.errors import CatalogUnreachable, TableMissing
from catalog.lineage import check_lineage
from catalog.missing import first_offsets
from catalog.model import PartitionOffset, TopicRow, TranslatedRange
from catalog.registry import Registry
from catalog.tables import TableCatalog
from schema_mapping.errors import ContextError

_ELECTION_TRIES = 5
_ELECTION_PAUSE_SECONDS = 1.0

StartFrom = Literal["earliest", "latest"] | datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """A look at a topic: what is known of its partitions, those without a leader, and the table with its offsets.

    A partition whose first files are missing has their start in `table_offsets`, where the table has nothing of it.
    """

    table: ArchiveTable
    partitions: tuple[PartitionView, ...]
    leaderless: Mapping[int, ContextError]
    table_offsets: dict[int, PartitionOffset]

    @property
    def known(self) -> dict[int, PartitionOffset]:
        """How far partitions are archived or staged; one that never was is not there."""
        return {each.partition: each.known for each in self.partitions if each.known is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBounds:
    """Where the logs of partitions begin, where their committed records end, and where leader epochs did."""

    starts: Mapping[int, int]
    ends: Mapping[int, int]
    epoch_ends: Mapping[int, EpochEnd]

    @classmethod
    def ask(
        cls, topic: str, partitions: Sequence[int], known: Mapping[int, PartitionOffset], brokers: BrokerClient
    ) -> Self:
        """Ask the partitions' leaders, also for the end of the epoch that each was last archived in."""
        epochs = {
            each: known[each].leader_epoch for each in partitions if each in known and known[each].leader_epoch >= 0
        }
        return cls(
            starts=brokers.list_offsets(topic, partitions, "earliest"),
            ends=brokers.list_offsets(topic, partitions, "latest_stable"),
            epoch_ends=brokers.end_of_epoch(topic, epochs) if epochs else {},
        )

    def view(
        self,
        partition: int,
        known: PartitionOffset | None,
        *,
        start: int | None = None,
        missing: Sequence[TranslatedRange] = (),
    ) -> PartitionView:
        """What is known of one of the partitions."""
        return PartitionView(
            partition=partition,
            log_start=self.starts[partition],
            last_stable=self.ends[partition],
            known=known,
            epoch_end=self.epoch_ends[partition].end_offset if partition in self.epoch_ends else None,
            start=start,
            missing=missing_files(missing, partition),
        )


def look(
    opened: TopicTable,
    start_from: StartFrom,
    *,
    brokers: BrokerClient,
    registry: Registry,
    catalog: TableCatalog,
    without: Iterable[int],
) -> TopicView:
    """Look at the topic's partitions but those in `without`. Raises the leaves of SourceError and CatalogError.

    RolledBack where others set the table back: its offsets then don't say what is in it.
    """
    topic = opened.topic
    staged = registry.staged_ends(topic)  # first: what is committed in between is then in the table
    try:
        table = catalog.load(topic)
    except CatalogUnreachable:
        # Archiving goes on: the registry knows what was accepted, committed or not, since the table was loaded.
        table, staged = opened.table, registry.accepted_ends(topic)
    if table is None:
        raise TableMissing("The table was dropped while its topic was archived", table=topic.table)
    if table is not opened.table:
        check_lineage(table)
    missing = registry.missing(topic, table_offsets=table.offsets)
    table_offsets = table.offsets | first_offsets(missing, table.offsets, staged)
    known = furthest(table_offsets, staged)
    described = _described(topic.topic, brokers)
    wanted = sorted(set(described) - set(without))
    away = {each: no_leader(topic.topic, each) for each in wanted if described[each].leader is None}
    partitions = [partition for partition in wanted if partition not in away]
    bounds = LogBounds.ask(topic.topic, partitions, known, brokers)
    starts: dict[int, int] = {}
    if start_from != "earliest" and any(partition not in known for partition in partitions):
        starts = registry.starts(topic)
        if not known and not starts:
            decided = _decide_starts(topic, start_from, bounds.ends, brokers)
            opened.journal.keep_starts(decided)
            starts = registry.starts(topic, decided)
    views = tuple(bounds.view(each, known.get(each), start=starts.get(each), missing=missing) for each in partitions)
    return TopicView(table=table, partitions=views, leaderless=away, table_offsets=table_offsets)


def no_leader(topic: str, partition: int) -> LeaderUnavailable:
    """The error of a partition that nobody leads."""
    return LeaderUnavailable(
        "The partition has no leader now: its brokers are down, or an election is under way",
        topic=topic,
        partition=partition,
    )


def _described(topic: str, brokers: BrokerClient) -> Mapping[int, PartitionDescription]:
    """The topic's partitions, given a moment to elect the leaders that are missing."""
    for _ in range(_ELECTION_TRIES):
        described = brokers.describe([topic])[topic].partitions
        if all(partition.leader is not None for partition in described.values()):
            break
        time.sleep(_ELECTION_PAUSE_SECONDS)
    return described


def _decide_starts(
    topic: TopicRow, start_from: Literal["latest"] | datetime, log_ends: Mapping[int, int], brokers: BrokerClient
) -> dict[int, int]:
    """Where the partitions begin of a topic that never was archived.

    Partitions that are added later aren't asked about here: no record of theirs is older, so they begin with their log.
    """
    if start_from == "latest":
        return dict(log_ends)
    found = brokers.list_offsets(topic.topic, log_ends, int(start_from.timestamp() * 1000))
    return {partition: min(offset, log_ends[partition]) for partition, offset in found.items()}
