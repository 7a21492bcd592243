"""What is known of a topic's partitions now, asked of table, registry and brokers, for the plan to decide on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass

from archiver.ingest.plan.ranges import SeenPartition, furthest
from archiver.ingest.topic.archive_reader import ArchiveReader
from archiver.ingest.topic.continuity import Continuity
from archiver.ingest.topic.log_bounds import LogBounds, no_leaders
from archiver.ingest.topic.opening import OpenedTopic
from archiver.ingest.topic.start_offsets import StartFrom, StartOffsets
from archiver.kafka.broker import BrokerClient, PartitionDescription
from archiver.kafka.fetch import log_reader
from archiver.storage.formats import FORMATS, SegmentFormats
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
class ArchivedOffsets:
    """How far a topic is archived: its table as loaded, and how far partitions are in it, or staged for it.

    `missing` are ranges whose files are gone; the start of a partition that lost its first is in `table_offsets`.
    """

    table: ArchiveTable
    table_offsets: dict[int, PartitionOffset]
    known: dict[int, PartitionOffset]
    missing: tuple[TranslatedRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetched:
    """What was asked for a topic's plan together with that of others: how far it is archived, or why that isn't known.

    `bounds` were asked after that, of all partitions that were to be looked at; None where a leader didn't answer.
    """

    archived: ArchivedOffsets | ContextError
    bounds: LogBounds | None = None


def archived_offsets(
    opened: OpenedTopic, *, registry: Registry, catalog: TableCatalog, is_as_opened: bool = False
) -> ArchivedOffsets:
    """Ask registry and catalog. Raises the leaves of RegistryError and CatalogError.

    The catalog isn't asked where this run has changed nothing since it opened the table (`is_as_opened`) a short time
    ago. What others commit meanwhile is then planned again, and the fence rejects it.

    RolledBack where others set the table back: its offsets then don't say what is in it. TableMissing where it was
    dropped, or made anew.
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
    opened: OpenedTopic,
    start_from: StartFrom,
    *,
    archived: ArchivedOffsets,
    bounds: LogBounds | None,
    brokers: BrokerClient,
    registry: Registry,
    catalog: TableCatalog,
    without: Iterable[int],
    proven: MutableMapping[int, PartitionOffset],
    formats: SegmentFormats = FORMATS,
) -> SeenTopic:
    """Look at the topic's partitions but those in `without`. Raises the leaves of SourceError and RegistryError.

    `archived` is how far the topic is archived. `bounds` is what leaders were asked after that; None where they
    weren't. `proven` is what `Continuity` remembers from one look to the next.
    """
    topic, known = opened.topic, archived.known
    described = _described(topic.topic, brokers, known, is_fresh=bounds is not None)
    unknown: dict[int, ContextError] = dict(no_leaders(topic.topic, described, known))
    wanted = {each: found for each, found in described.items() if each not in set(without)}
    led = sorted(wanted.keys() - unknown.keys())
    if bounds is None or sorted(bounds.starts) != led:
        bounds = LogBounds.ask(topic.topic, led, known, brokers)
    starts = StartOffsets(
        topic=topic, name=topic.topic, start_from=start_from, brokers=brokers, remembered=registry.starts
    ).of(bounds.new(known, wanted), is_first=not known)
    continuity = Continuity(
        topic.topic,
        epochs=brokers,
        log=log_reader(brokers, topic.topic, topic.topic_id),
        archived=lambda: ArchiveReader.of(archived.table, registry, catalog, formats),
        starts=lambda: registry.starts.decide(topic),
        proven=proven,
    )
    partitions: list[SeenPartition] = []
    for each in bounds.starts:
        try:
            seen = bounds.seen(each, known.get(each), starts.get(each), missing=archived.missing)
            partitions.append(continuity.judged(seen, bounds.epoch_ends.get(each)))
        except ContextError as error:
            unknown[each] = error
    return SeenTopic(
        table=archived.table,
        partitions=tuple(partitions),
        unknown={each: error for each, error in unknown.items() if each in wanted},
        table_offsets=archived.table_offsets,
    )


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
