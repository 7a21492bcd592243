"""The target that a topic's tasks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from archiver.config.model import TopicConfig
from archiver.ingest.kafka_log.source import KafkaSource
from archiver.ingest.task.values import TopicTarget
from archiver.storage.segment import SegmentFormat
from archiver.topics.file_target import file_target
from archiver.topics.opening import OpenedTopic


def target_of(
    opened: OpenedTopic,
    config: TopicConfig,
    *,
    kafka: Mapping[str, str],
    format_: SegmentFormat,
    pending_bytes: int,
) -> TopicTarget:
    topic = opened.topic
    target = file_target(opened, config, format_=format_, pending_bytes=pending_bytes)
    return TopicTarget(
        **{field.name: getattr(target, field.name) for field in fields(target)},
        source=KafkaSource(options=kafka, topic=topic.topic, topic_id=topic.topic_id),
    )
