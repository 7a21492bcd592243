"""Checks of servers: Kafka and the rights on each topic, Postgres, the schema registry."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from archiver.config import Config, TopicConfig
from archiver.config.topics import internal_hint, is_pattern
from archiver.errors import LeaderUnavailable, SchemaRegistryError
from archiver.kafka import BrokerClient, PartitionFetcher
from archiver.schemas import FORMATS
from archiver.schemas.registry.http import RegistryHttp
from archiver.schemas.registry.settings import schema_registry_settings
from archiver.schemas.topic_schemas import TopicSchemas, schema_registry_name
from archiver.setup.findings import Finding, Outcome, failure
from catalog.registry.postgres import Postgres
from schema_mapping.errors import ContextError

KAFKA = "Kafka"
POSTGRES = "Postgres"
SCHEMA_REGISTRY = "Schema registry"


def look_at_kafka(config: Config) -> Iterator[Finding]:
    """Find out whether the cluster answers, and whether each topic can be described and read."""
    with BrokerClient(config.kafka) as brokers:
        cluster_id, existing = brokers.cluster_id(), brokers.topics()
        yield Finding(part=KAFKA, detail=f"cluster {cluster_id}; this principal sees {_count(len(existing), 'topic')}")
        for section in config.sections:
            if is_pattern(section) and not any(fnmatchcase(topic, section) for topic in existing):
                yield Finding(
                    part=KAFKA,
                    subject=f"pattern {section}",
                    outcome=Outcome.WARNING,
                    detail=f"no topic matches yet, or this principal may not DESCRIBE it{internal_hint(section)}",
                )
        topics = config.select(existing, may_be_none=True) if config.sections else ()
        brokers.refresh([topic.name for topic in topics])
        for topic in topics:
            yield _topic(brokers, topic)


def _topic(brokers: BrokerClient, topic: TopicConfig) -> Finding:
    """Describe a topic, ask each leader for the bounds of its logs, and fetch from one partition."""
    subject = f"topic {topic.name}"
    try:
        described = brokers.described(topic.name)
        if silent := [number for number, each in described.partitions.items() if each.leader is None]:
            raise LeaderUnavailable("Partitions have no leader now", topic=topic.name, partitions=silent)
        starts = brokers.list_offsets(topic.name, described.partitions, "earliest")
        ends = brokers.list_offsets(topic.name, described.partitions, "latest_stable")
        one = max(described.partitions, key=lambda each: ends[each] - starts[each])
        PartitionFetcher(brokers, topic.name, described.topic_id, one).fetch(starts[one], max_bytes=1)
    except ContextError as error:
        return failure(KAFKA, error, subject)
    offsets = sum(ends[each] - starts[each] for each in described.partitions)
    detail = f"described and read: {_count(len(described.partitions), 'partition')}, {_count(offsets, 'offset')}"
    return Finding(part=KAFKA, subject=subject, detail=detail)


def look_at_postgres(dsn: str) -> Iterator[Finding]:
    """Find out whether the registry's database answers and takes what the archiver writes. Nothing is changed."""
    database = Postgres(dsn, connections=1)
    try:
        rehearsed = database.rehearse()
    finally:
        database.close()
    missing = len(rehearsed.missing)
    state = "is up to date" if not missing else f"gets {_count(missing, 'migration')} at the next start, tried here"
    yield Finding(part=POSTGRES, detail=f"PostgreSQL {rehearsed.server}; the registry {state}")


def look_at_schema_registry(config: Config) -> Iterator[Finding]:
    """Find out whether the schema registry answers, and has the schemas of the topics that need it."""
    section = config.schema_registry
    if section is None:
        yield Finding(part=SCHEMA_REGISTRY, outcome=Outcome.SKIPPED, detail="none is configured")
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
