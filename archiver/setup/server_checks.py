"""Checks of Kafka, Postgres, and the schema registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final

from kafka.protocol.admin.cluster import DescribeLogDirsRequest
from kafka.protocol.admin.configs import DescribeConfigsRequest
from kafka.protocol.admin.transactions import DescribeProducersRequest
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from archiver.config import Config, TopicConfig
from archiver.config.topics import internal_hint, is_pattern
from archiver.errors import LeaderUnavailable, SchemaRegistryError
from archiver.kafka import BrokerClient, PartitionFetcher, losses
from archiver.kafka.unreadable import unreadable
from archiver.schemas import FORMATS
from archiver.schemas.registry.http import RegistryHttp
from archiver.schemas.registry.settings import schema_registry_settings
from archiver.schemas.topic_schemas import TopicSchemas, schema_registry_name
from archiver.setup.findings import CheckOutcome, Finding, failure
from archiver.topics.continuity import UNPROVEN_EPOCHS
from catalog.registry.postgres import Postgres
from schema_mapping.errors import ContextError

KAFKA = "Kafka"
POSTGRES = "Postgres"
SCHEMA_REGISTRY = "Schema registry"

_OPTIONAL: Final[Mapping[int, tuple[str, str]]] = {
    OffsetForLeaderEpochRequest.API_KEY: (
        "OffsetForLeaderEpoch",
        "each run compares the newest archived records of a partition (at most 1 MiB) with its log instead",
    ),
    DescribeConfigsRequest.API_KEY: ("DescribeConfigs", "the archiver doesn't know which topics are compacted"),
    DescribeLogDirsRequest.API_KEY: ("DescribeLogDirs", "sizes of backlogs are estimated until records were read"),
    DescribeProducersRequest.API_KEY: ("DescribeProducers", "`archiver status` doesn't name open transactions"),
}
"""Requests that the archiver can do without, by key, each with what is missing then."""


def look_at_kafka(config: Config) -> Iterator[Finding]:
    if not config.has_kafka:
        yield Finding(part=KAFKA, outcome=CheckOutcome.SKIPPED, detail="no topic comes from Kafka")
        return
    with BrokerClient(config.kafka) as brokers:
        cluster_id, existing = brokers.cluster_id(), brokers.topics()
        yield Finding(part=KAFKA, detail=f"cluster {cluster_id}; this principal sees {_count(len(existing), 'topic')}")
        for section in config.sections:
            if is_pattern(section) and not any(fnmatchcase(topic, section) for topic in existing):
                yield Finding(
                    part=KAFKA,
                    subject=f"pattern {section}",
                    outcome=CheckOutcome.WARNING,
                    detail=f"no topic matches yet, or this principal may not DESCRIBE it{internal_hint(section)}",
                )
        yield from _requests(brokers)
        topics = config.select_kafka(existing, may_be_none=True) if config.sections else ()
        brokers.refresh([topic.name for topic in topics])
        yield from _ids(brokers, topics)
        for topic in topics:
            yield from _topic(brokers, topic)


def _requests(brokers: BrokerClient) -> Iterator[Finding]:
    present = brokers.requests()
    for key, (name, consequence) in _OPTIONAL.items():
        if key not in present:
            yield Finding(
                part=KAFKA, subject=name, outcome=CheckOutcome.WARNING, detail=f"the brokers lack it: {consequence}"
            )


def _ids(brokers: BrokerClient, topics: Sequence[TopicConfig]) -> Iterator[Finding]:
    """Warn once if topics have no ids (Kafka before 2.8, Redpanda before 25.3)."""
    for topic in topics:
        with suppress(ContextError):  # reported for its topic
            if brokers.described(topic.name).topic_id is None:
                detail = (
                    "the brokers give topics none, so each run compares the newest archived records (at most 1 MiB) of"
                    " partitions with new ones: a topic that was created again may have the same epochs"
                )
                yield Finding(part=KAFKA, subject="topic ids", outcome=CheckOutcome.WARNING, detail=detail)
            return


def _topic(brokers: BrokerClient, topic: TopicConfig) -> Iterator[Finding]:
    subject = f"topic {topic.name}"
    try:
        described = brokers.described(topic.name)
        if silent := [number for number, item in described.partitions.items() if item.leader is None]:
            raise LeaderUnavailable("Partitions have no leader now", topic=topic.name, partitions=silent)
        starts = brokers.list_offsets(topic.name, described.partitions, "earliest")
        ends = brokers.list_offsets(topic.name, described.partitions, "latest_stable")
        fullest = max(described.partitions, key=lambda item: ends[item] - starts[item])
        log = PartitionFetcher(brokers, topic.name, described.topic_id, fullest)
        log.fetch(starts[fullest], max_bytes=1)
        if ends[fullest] > starts[fullest] and (reason := unreadable(log, starts[fullest])) is not None:
            raise losses.unreadable(reason, topic.name, fullest, offset=starts[fullest])
        is_useless = not brokers.lacks_epochs and _epochs_are_useless(brokers, log, topic.name, fullest, ends[fullest])
    except ContextError as error:
        yield failure(KAFKA, error, subject)
        return
    offsets = sum(ends[partition] - starts[partition] for partition in described.partitions)
    detail = f"described and read: {_count(len(described.partitions), 'partition')}, {_count(offsets, 'offset')}"
    yield Finding(part=KAFKA, subject=subject, detail=detail)
    if is_useless:
        yield Finding(part=KAFKA, subject=subject, outcome=CheckOutcome.WARNING, detail=UNPROVEN_EPOCHS % topic.name)


def _epochs_are_useless(brokers: BrokerClient, log: PartitionFetcher, topic: str, partition: int, end: int) -> bool:
    """Neither the brokers nor the newest batch name an epoch, or it ends before the log."""
    epoch = brokers.current_epoch(topic, partition)
    if not end:
        return False
    if epoch < 0:  # as Metadata before version 9 does
        epoch, end = _newest_epoch(log, end)
    if epoch < 0:
        return True
    answer = brokers.end_of_epoch(topic, {partition: epoch}).get(partition)
    if brokers.lacks_epochs:
        return False
    moved = brokers.current_epoch(topic, partition) not in {-1, epoch}
    return not moved and (answer is None or answer.end_offset < end)


def _newest_epoch(log: PartitionFetcher, end: int) -> tuple[int, int]:
    """The epoch of the newest committed batch, -1 if it has none, and an offset at or before the epoch's end."""
    newest = -1, 0
    for piece in log.batches(end - 1, end, cut_head=True, max_bytes=1):
        if len(piece.epochs.epoch):
            newest = int(piece.epochs.epoch[-1]), int(piece.epochs.base_offset[-1]) + 1
    return newest


def look_at_postgres(dsn: str) -> Iterator[Finding]:
    """Changes nothing."""
    database = Postgres(dsn, connections=1)
    try:
        rehearsed = database.rehearse()
    finally:
        database.close()
    missing = len(rehearsed.missing)
    state = "is up to date" if not missing else f"gets {_count(missing, 'migration')} at the next start, tried here"
    yield Finding(part=POSTGRES, detail=f"PostgreSQL {rehearsed.server}; the registry {state}")


def look_at_schema_registry(config: Config) -> Iterator[Finding]:
    """Raises SchemaRegistryError if the registry is unusable."""
    section = config.schema_registry
    if section is None:
        yield Finding(part=SCHEMA_REGISTRY, outcome=CheckOutcome.SKIPPED, detail="none is configured")
        return
    settings = schema_registry_settings(section)
    kinds = RegistryHttp(settings).get_list("/schemas/types") or ()
    readable = {entry.kind.name: entry.kind.label for entry in FORMATS.registered if entry.kind is not None}
    if readable.keys().isdisjoint(kinds):
        raise SchemaRegistryError(
            f"the schema registry answers, and has no {' or '.join(readable.values())} schemas",
            url=settings.name,
            types=tuple(kinds),
        )
    yield Finding(part=SCHEMA_REGISTRY, detail=settings.name)
    for name in config.sections:
        topic = config.topic(name)
        if is_pattern(name) or schema_registry_name(topic, section) is None:
            continue
        subject = f"topic {name}"
        try:
            read = TopicSchemas.read(topic, section)
        except ContextError as error:
            yield failure(SCHEMA_REGISTRY, error, subject)
            continue
        messages = [message for schema in (read.key, read.value) if schema is not None for message in schema.messages]
        yield Finding(part=SCHEMA_REGISTRY, subject=subject, detail=", ".join(messages))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
