"""What the tasks of an opened topic share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from archiver.config.model import TopicConfig
from archiver.ingest.kafka_log.source import KafkaSource
from archiver.ingest.task.values import TopicTarget
from archiver.storage.segment import SegmentFormat, SegmentLayout
from archiver.topics.opening import OpenedTopic, store_of


def target_of(
    opened: OpenedTopic,
    config: TopicConfig,
    *,
    kafka: Mapping[str, str],
    format_: SegmentFormat,
    pending_bytes: int,
) -> TopicTarget:
    """`pending_bytes` is `partition_memory`."""
    table, row, topic = opened.table, opened.row, opened.topic
    return TopicTarget(
        topic=topic.topic,
        topic_id=str(topic.topic_id) if topic.topic_id else "",
        cluster_id=topic.cluster_id,
        row=row,
        layout=replace(
            SegmentLayout.of_mapping(row, table.properties, opened.bloom_filters),
            plain_encodings=config.encodings == "plain",
        ),
        on_parse_error=config.on_parse_error,
        on_unrecognized=config.on_unrecognized,
        data_location=table.data_location,
        partitioning=table.partitioning,
        target_file_size=config.target_file_size,
        objects=store_of(table),
        format=format_,
        source=KafkaSource(options=kafka, topic=topic.topic, topic_id=topic.topic_id),
        key_envelope=opened.key_envelope,
        value_envelope=opened.value_envelope,
        waiting=opened.waiting_mapping,
        pending_bytes=pending_bytes,
    )
