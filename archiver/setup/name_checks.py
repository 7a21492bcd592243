"""Checks of table names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from archiver.config import Config, TopicConfig
from archiver.config.topics import is_pattern
from archiver.kafka import BrokerClient
from archiver.setup.findings import CheckOutcome, Finding, failure
from archiver.topics.opening import not_made
from archiver.topics.shared_tables import refuse_shared
from catalog.errors import CatalogRefused, TableTaken
from catalog.iceberg.properties import owner
from catalog.iceberg.scratch_table import ScratchTable
from catalog.model import new_id
from schema_mapping.errors import ContextError

NAMES: Final = "Table names"

MOST_NAMES: Final = 500
"""How many names are tried in a namespace, names with unusual characters at their ends first."""


def look_at_names(config: Config, *, seconds: float) -> Iterator[Finding]:
    """Propose tables to the catalog without creating them."""
    topics = topics_of(config)
    sharing = refuse_shared(topics, {}, cluster_id="", named=config.sections)
    by_namespace: dict[str, list[TopicConfig]] = defaultdict(list)
    for topic in topics:
        by_namespace[topic.table.rpartition(".")[0]].append(topic)
    for namespace, some in by_namespace.items():
        name = f"archiver_check_{new_id().lower()}"
        scratch = ScratchTable(config.catalog, namespace=namespace, name=name, timeout_seconds=seconds)
        try:
            scratch.connect()
            yield from _tried(scratch, namespace, sorted(some, key=_usual), sharing)
        except ContextError as error:
            yield failure(NAMES, error, f"namespace {namespace}")
        finally:
            left = scratch.leave()
        if left is not None:
            yield failure(NAMES, left, f"namespace {namespace}")


def topics_of(config: Config) -> tuple[TopicConfig, ...]:
    """Without Kafka: topics with a section."""
    existing: tuple[str, ...] = ()
    if any(map(is_pattern, config.sections)):
        try:
            with BrokerClient(config.kafka) as brokers:
                existing = brokers.topics()
        except ContextError:
            pass  # the check of Kafka reports it
    return config.select(existing, may_be_none=True) if config.sections else ()


def _usual(topic: TopicConfig) -> tuple[bool, int, str]:
    name = topic.table.rpartition(".")[2]
    return name[0].isalpha() and name[-1].isalnum(), -len(name), name


def _tried(
    scratch: ScratchTable, namespace: str, topics: Sequence[TopicConfig], sharing: Mapping[str, TableTaken]
) -> Iterator[Finding]:
    proposes = scratch.proposes()
    refused = 0
    for topic in topics[:MOST_NAMES]:
        try:
            _try(scratch, topic, sharing, proposes=proposes)
        except ContextError as error:
            refused += 1
            yield failure(NAMES, error, f"topic {topic.name}")
    if not proposes:
        detail = "names can't be tried: the catalog has no staged creation, so it would make the tables"
        yield Finding(part=NAMES, subject=f"namespace {namespace}", outcome=CheckOutcome.SKIPPED, detail=detail)
    elif not refused:
        tried = len(topics[:MOST_NAMES])
        noun = "name" if tried == 1 else "names"
        detail = f"the catalog takes {tried:,} {noun}" + (f" of {len(topics):,}" if tried < len(topics) else "")
        yield Finding(part=NAMES, subject=f"namespace {namespace}", detail=detail)


def _try(scratch: ScratchTable, topic: TopicConfig, sharing: Mapping[str, TableTaken], *, proposes: bool) -> None:
    try:
        properties = scratch.try_name(topic.table, proposes=proposes)
    except CatalogRefused as error:
        raise not_made(topic, error) from error
    if properties is not None:
        owner(properties, topic=topic.name, table=topic.table)
    elif topic.name in sharing:
        raise sharing[topic.name]
