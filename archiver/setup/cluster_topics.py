"""A cluster's topics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from archiver.config import Config
from archiver.config.topics import section_for
from archiver.kafka import BrokerClient
from archiver.topics.filled_state import FLIGHT_CLUSTER
from catalog.errors import RegistryError, RegistryNotMigrated
from catalog.registry import RegistryReader
from schema_mapping.errors import ContextError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSize:
    """`offsets` is the number that its logs span. None: unknown."""

    topic: str
    partitions: int | None = None
    offsets: int | None = None
    error: ContextError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTopic:
    """`size` is None if the cluster lacks it, or has a `flight` topic's configured partitions."""

    topic: str
    size: TopicSize | None
    section: str | None
    archived_to: str | None
    source: str = "kafka"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicList:
    """`registry_error`: Postgres couldn't list archived topics. `cluster_id` is None without brokers."""

    cluster_id: str | None
    topics: tuple[ListedTopic, ...]
    registry_error: RegistryError | None = None


def list_topics(config: Config, wanted: Iterable[str] = ()) -> TopicList:
    """`wanted` are globs (default: all). Raises BrokerClient's errors."""
    globs = tuple(wanted) or ("*",)
    sizes: dict[str, TopicSize] = {}
    cluster_id = None
    if config.has_kafka:
        with BrokerClient(config.kafka) as brokers:
            cluster_id = brokers.cluster_id()
            sizes = {size.topic: size for size in topic_sizes(brokers, _matching(brokers.topics(), globs))}
    filled = {topic.name: TopicSize(topic=topic.name, partitions=topic.partitions) for topic in config.flight_topics}
    sizes |= {name: filled[name] for name in _matching(filled, globs)}
    tables, registry_error = _archived(config.registry.dsn, cluster_id, frozenset(filled))
    named = {section for section in config.sections if section_for(section, config.sections) == section}
    configured = (name for name in named if not set(name) & set("*?["))
    names = sorted({*sizes, *_matching({*configured, *tables}, globs)})
    topics = tuple(
        ListedTopic(
            topic=name,
            size=sizes.get(name),
            section=section_for(name, config.sections),
            archived_to=tables.get(name),
            source="flight" if name in filled else "kafka",
        )
        for name in names
    )
    return TopicList(cluster_id=cluster_id, topics=topics, registry_error=registry_error)


def topic_sizes(brokers: BrokerClient, topics: Iterable[str]) -> tuple[TopicSize, ...]:
    names = tuple(topics)
    brokers.refresh(names)
    described, errors = {}, {}
    for name in names:
        try:
            described[name] = brokers.described(name)
        except ContextError as error:
            errors[name] = error
    asked = {name: tuple(description.partitions) for name, description in described.items()}
    starts = brokers.list_offsets_at_once(asked, "earliest")
    ends = brokers.list_offsets_at_once(asked, "high_watermark")
    return tuple(
        TopicSize(
            topic=name,
            partitions=len(asked[name]) if name in asked else None,
            offsets=sum(ends[name].values()) - sum(starts[name].values()) if name in starts and name in ends else None,
            error=errors.get(name),
        )
        for name in names
    )


def _archived(dsn: str, cluster_id: str | None, filled: frozenset[str]) -> tuple[dict[str, str], RegistryError | None]:
    try:
        with RegistryReader(dsn, connections=1) as registry:
            return {
                row.topic: row.table
                for row in registry.topics.every()
                if row.cluster_id == (FLIGHT_CLUSTER if row.topic in filled else cluster_id)
            }, None
    except RegistryNotMigrated:
        return {}, None
    except RegistryError as error:
        return {}, error


def _matching(names: Iterable[str], globs: tuple[str, ...]) -> list[str]:
    return [name for name in names if any(fnmatchcase(name, glob) for glob in globs)]
