"""Conversions from and to confluent_kafka's types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ClusterMetadata, PartitionMetadata, TopicMetadata

from archiver.archive.topic_archive import TopicArchive

# librdkafka's own codes, which confluent_kafka spells with an underscore
INVALID_ARG = KafkaError._INVALID_ARG  # noqa: SLF001
CONFLICT = KafkaError._CONFLICT  # noqa: SLF001
UNKNOWN_GROUP = KafkaError._UNKNOWN_GROUP  # noqa: SLF001
UNKNOWN_PARTITION = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001
PARTITION_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001
NO_OFFSET = KafkaError._NO_OFFSET  # noqa: SLF001
AUTO_OFFSET_RESET = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001

NO_LEADER = -1

PartitionId: TypeAlias = tuple[str, int]
"""Topic and number of a partition."""


def partition_id(one: TopicPartition) -> PartitionId:
    return one.topic, one.partition


def check_list(partitions: Any) -> None:
    """Raises TypeError."""
    if not isinstance(partitions, list) or not all(isinstance(partition, TopicPartition) for partition in partitions):
        raise TypeError("requires list of TopicPartition")


def failure(code: int, text: str) -> KafkaException:
    return KafkaException(KafkaError(code, text))


def or_invalid(offset: int | None) -> int:
    position: int = OFFSET_INVALID if offset is None else offset
    return position


def cluster_metadata(archives: Iterable[TopicArchive]) -> ClusterMetadata:
    cluster: Any = ClusterMetadata()
    for archive in archives:
        topic: Any = TopicMetadata()
        topic.topic = archive.topic
        topic.partitions = {partition: _partition_metadata(partition) for partition in archive.partitions}
        cluster.topics[archive.topic] = topic
        cluster.cluster_id = archive.cluster_id
    described: ClusterMetadata = cluster
    return described


def _partition_metadata(number: int) -> PartitionMetadata:
    partition = PartitionMetadata()
    partition.id = number
    partition.leader = NO_LEADER
    return partition
