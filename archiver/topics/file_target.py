"""The target of files of an opened topic."""

from __future__ import annotations

from dataclasses import replace

from archiver.config.model import TopicConfig
from archiver.files.range_files import FileTarget
from archiver.storage.segment import SegmentFormat, SegmentLayout
from archiver.topics.opening import OpenedTopic, store_of


def file_target(opened: OpenedTopic, config: TopicConfig, *, format_: SegmentFormat, pending_bytes: int) -> FileTarget:
    table, row, topic = opened.table, opened.row, opened.topic
    return FileTarget(
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
        key_envelope=opened.key_envelope,
        value_envelope=opened.value_envelope,
        waiting=opened.waiting_mapping,
        pending_bytes=pending_bytes,
    )
