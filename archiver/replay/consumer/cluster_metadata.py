"""Archived topics as confluent_kafka's ClusterMetadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka.admin import ClusterMetadata, PartitionMetadata, TopicMetadata

from archiver.archive.topic_archive import TopicArchive

NO_LEADER = -1


def describe(archives: Iterable[TopicArchive]) -> ClusterMetadata:
    """Describe topics and their partitions: no brokers, no leaders, no replicas."""
    cluster: Any = ClusterMetadata()
    for archive in archives:
        topic: Any = TopicMetadata()
        topic.topic = archive.topic
        topic.partitions = {partition: _partition(partition) for partition in archive.partitions}
        cluster.topics[archive.topic] = topic
        cluster.cluster_id = archive.cluster_id
    described: ClusterMetadata = cluster
    return described


def _partition(number: int) -> PartitionMetadata:
    partition = PartitionMetadata()
    partition.id = number
    partition.leader = NO_LEADER
    return partition
