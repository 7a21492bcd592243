"""What is known of a topic's partitions now, asked of table, registry and brokers, for the plan to decide on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Self

from archiver.commit.presence import missing_files
from archiver.errors import LeaderUnavailable
from archiver.ingest.plan.ranges import SeenPartition, furthest
from archiver.ingest.topic.archived_records import ArchivedRecords
from archiver.ingest.topic.continuity import Continuity
from archiver.ingest.topic.starts import NewPartitions, StartFrom, Starts
from archiver.ingest.topic.table import TopicTable
from archiver.kafka.broker import BrokerClient, EpochEnd, PartitionDescription
from archiver.kafka.fetch import log_reader
from archiver.storage.formats import FORMATS, SegmentFormats
from catalog.errors import CatalogUnreachable, TableMissing
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import check_lineage
from catalog.iceberg.tables import TableCatalog
from catalog.model import PartitionOffset, TranslatedRange
from catalog.registry import Registry
from catalog.registry.missing import first_offsets
from schema_mapping.errors import ContextError

_ELECTION_TRIES = 5
_ELECTION_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTopic:
    """A topic as it was seen: what is known of its partitions, the table with its offsets.

    A partition whose first files are missing has their start in `table_offsets`, where the table has nothing of it.
    `unknown` are the partitions of which nothing can be said now, each with its reason: most have no leader.
    """

    table: ArchiveTable
    partitions: tuple[SeenPartition, ...]
    unknown: Mapping[int, ContextError]
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
        epochs = _epochs(partitions, known)
        return cls(
            starts=brokers.list_offsets(topic, partitions, "earliest"),
            ends=brokers.list_offsets(topic, partitions, "latest_stable"),
            epoch_ends=brokers.end_of_epoch(topic, epochs) if epochs else {},
        )

    @classmethod
    def ask_at_once(
        cls,
        wanted: Mapping[str, Sequence[int]],
        known: Mapping[str, Mapping[int, PartitionOffset]],
        brokers: BrokerClient,
    ) -> dict[str, Self]:
        """The same of many topics, one question to each leader; those it can't be told of now are left out."""
        starts = brokers.list_offsets_at_once(wanted, "earliest")
        ends = brokers.list_offsets_at_once({topic: wanted[topic] for topic in starts}, "latest_stable")
        epochs = {topic: _epochs(wanted[topic], known[topic]) for topic in ends}
        epoch_ends = brokers.end_of_epoch_at_once({topic: asked for topic, asked in epochs.items() if asked})
        return {
            topic: cls(starts=starts[topic], ends=ends[topic], epoch_ends=epoch_ends.get(topic, {}))
            for topic, asked in epochs.items()
            if topic in epoch_ends or not asked
        }

    def seen(
        self,
        partition: int,
        known: PartitionOffset | None,
        start: int | None,
        *,
        missing: Sequence[TranslatedRange] = (),
    ) -> SeenPartition:
        """What is known of one of the partitions, its past not judged yet."""
        return SeenPartition(
            partition=partition,
            log_start=self.starts[partition],
            last_stable=self.ends[partition],
            known=known,
            start=start,
            missing=missing_files(missing, partition),
        )

    def new(self, known: Mapping[int, PartitionOffset], described: Mapping[int, PartitionDescription]) -> NewPartitions:
        """Of the partitions `described`, those that never were archived."""
        return NewPartitions(
            log_starts={each: offset for each, offset in self.starts.items() if each not in known},
            log_ends={each: offset for each, offset in self.ends.items() if each not in known},
            leaderless={each: found for each, found in described.items() if each not in {*known, *self.starts}},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """How far a topic is archived: its table as loaded, and how far partitions are in it, or staged for it.

    `missing` are ranges whose files are gone; the start of a partition that lost its first is in `table_offsets`.
    """

    table: ArchiveTable
    table_offsets: dict[int, PartitionOffset]
    known: dict[int, PartitionOffset]
    missing: tuple[TranslatedRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What was asked for a topic's plan together with that of others: how far it is archived, or why that isn't known.

    `bounds` were asked after that, of all partitions that were to be looked at; None where a leader didn't answer.
    """

    place: Reached | ContextError
    bounds: LogBounds | None = None


def reached(opened: TopicTable, *, registry: Registry, catalog: TableCatalog) -> Reached:
    """Ask registry and catalog. Raises the leaves of RegistryError and CatalogError.

    RolledBack where others set the table back: its offsets then don't say what is in it.
    """
    topic = opened.topic
    staged = registry.files.staged_ends(topic)  # first: what is committed in between is then in the table
    try:
        table = catalog.load(topic)
    except CatalogUnreachable:
        # Archiving goes on: the registry knows what was accepted, committed or not, since the table was loaded.
        table, staged = opened.table, registry.files.accepted_ends(topic)
    if table is None:
        raise TableMissing("The table was dropped while its topic was archived", table=topic.table)
    if table is not opened.table:
        check_lineage(table)
    missing = registry.missing.load(topic, table_offsets=table.offsets)
    table_offsets = table.offsets | first_offsets(missing, table.offsets, staged)
    return Reached(
        table=table, table_offsets=table_offsets, known=furthest(table_offsets, staged), missing=tuple(missing)
    )


def look(
    opened: TopicTable,
    start_from: StartFrom,
    *,
    place: Reached,
    bounds: LogBounds | None,
    brokers: BrokerClient,
    registry: Registry,
    catalog: TableCatalog,
    without: Iterable[int],
    proven: MutableMapping[int, PartitionOffset],
    formats: SegmentFormats = FORMATS,
) -> SeenTopic:
    """Look at the topic's partitions but those in `without`. Raises the leaves of SourceError and RegistryError.

    `place` is how far the topic is archived. `bounds` is what leaders were asked after that; None where they weren't.
    `proven` is what `Continuity` remembers from one look to the next.
    """
    topic, known = opened.topic, place.known
    described = _described(topic.topic, brokers, known, is_fresh=bounds is not None)
    unknown: dict[int, ContextError] = dict(no_leaders(topic.topic, described, known))
    wanted = {each: found for each, found in described.items() if each not in set(without)}
    led = sorted(wanted.keys() - unknown.keys())
    if bounds is None or sorted(bounds.starts) != led:
        bounds = LogBounds.ask(topic.topic, led, known, brokers)
    starts = Starts(
        topic=topic, name=topic.topic, start_from=start_from, brokers=brokers, remembered=registry.starts
    ).of(bounds.new(known, wanted), is_first=not known)
    continuity = Continuity(
        topic.topic,
        epochs=brokers,
        log=log_reader(brokers, topic.topic, topic.topic_id),
        archived=lambda: ArchivedRecords.of(topic, registry, catalog, formats),
        starts=lambda: registry.starts.decide(topic),
        proven=proven,
    )
    partitions: list[SeenPartition] = []
    for each in bounds.starts:
        try:
            seen = bounds.seen(each, known.get(each), starts.get(each), missing=place.missing)
            partitions.append(continuity.judged(seen, bounds.epoch_ends.get(each)))
        except ContextError as error:
            unknown[each] = error
    return SeenTopic(
        table=place.table,
        partitions=tuple(partitions),
        unknown={each: error for each, error in unknown.items() if each in wanted},
        table_offsets=place.table_offsets,
    )


def no_leaders(
    topic: str, described: Mapping[int, PartitionDescription], known: Mapping[int, PartitionOffset]
) -> dict[int, LeaderUnavailable]:
    """The errors of partitions that nobody leads, or whose leader was deposed before what is archived was written."""
    errors: dict[int, LeaderUnavailable] = {}
    for partition, found in sorted(described.items()):
        archived_in = known[partition].leader_epoch if partition in known else -1
        if found.leader is None:
            errors[partition] = LeaderUnavailable(
                "The partition has no leader now: its brokers are down, or an election is under way",
                topic=topic,
                partition=partition,
            )
        elif -1 < found.leader_epoch < archived_in:
            errors[partition] = LeaderUnavailable(
                "The broker that was asked names a leader of the past: it is cut off from its cluster, or lags behind. "
                "Where the cluster was restored from a backup, docs/operations.md says what to do",
                topic=topic,
                partition=partition,
                leader_epoch=found.leader_epoch,
                archived_leader_epoch=archived_in,
            )
    return errors


def _epochs(partitions: Iterable[int], known: Mapping[int, PartitionOffset]) -> dict[int, int]:
    """The leader epochs that the partitions were last archived in, where that is known."""
    return {each: known[each].leader_epoch for each in partitions if each in known and known[each].leader_epoch >= 0}


def _described(
    topic: str, brokers: BrokerClient, known: Mapping[int, PartitionOffset], *, is_fresh: bool
) -> Mapping[int, PartitionDescription]:
    """The topic's partitions, given a moment to elect the leaders that are missing.

    `is_fresh` says that the topic was described a moment ago.
    """
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
