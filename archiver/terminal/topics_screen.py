"""The topics of a cluster."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from archiver.setup.cluster_topics import ListedTopic, TopicList
from archiver.terminal.listing import NOTHING, Column, Listing


def topics_screen(found: TopicList) -> RenderableType:
    return Group(*([topics_listing(found)] if found.topics else []), Text(topics_summary(found)))


def topics_listing(found: TopicList) -> Listing:
    listing = Listing(
        Column(heading="topic", kind="name"),
        Column(heading="partitions", alone="partitions: {}"),
        Column(heading="records, at most", alone="records, at most: {}"),
        Column(heading="section", alone="section: {}", kind="text"),
        Column(heading="archived to", alone="archived to: {}", kind="text"),
    )
    for topic in found.topics:
        size = topic.size
        listing.add(
            Text(topic.topic, style="bold"),
            "not there" if size is None else _number(size.partitions),
            NOTHING if size is None or topic.source == "flight" else _number(size.offsets),
            _section(topic),
            "unknown" if found.registry_error else topic.archived_to or NOTHING,
        )
    return listing


def topics_summary(found: TopicList) -> str:
    existing = [topic for topic in found.topics if topic.size is not None and topic.source == "kafka"]
    filled = sum(topic.source == "flight" for topic in found.topics)
    without = sum(topic.section is None for topic in existing)
    topics = f"{len(existing):,} topic{'' if len(existing) == 1 else 's'} in cluster {found.cluster_id}"
    from_clients = f"{filled:,} topic{'' if filled == 1 else 's'} of Flight clients"
    if found.cluster_id is None:
        return from_clients
    if filled:
        topics += f", {from_clients}"
    if not without:
        return topics
    return (
        f"{topics}; {without:,} without a section: the configuration doesn't archive {'it' if without == 1 else 'them'}"
    )


def topics_json(found: TopicList) -> dict[str, Any]:
    return {"cluster_id": found.cluster_id, "topics": [_topic_json(topic) for topic in found.topics]}


def _section(topic: ListedTopic) -> str:
    section = topic.section or NOTHING
    return f"{section} (Flight)" if topic.source == "flight" else section


def _topic_json(each: ListedTopic) -> dict[str, Any]:
    return {
        "topic": each.topic,
        "source": each.source,
        "in_cluster": each.size is not None and each.source == "kafka",
        "partitions": None if each.size is None else each.size.partitions,
        "offsets": None if each.size is None else each.size.offsets,
        "section": each.section,
        "archived_to": each.archived_to,
    }


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
