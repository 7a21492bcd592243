"""Committed offsets of groups."""

from __future__ import annotations

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually


def commit(stack: Stack, group: str, topic: str, offsets: dict[int, int]) -> None:
    places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    expected = [ConsumerGroupTopicPartitions(group, places)]

    def is_committed() -> bool:  # a cluster that has just started is still loading its coordinators
        result = stack.admin.alter_consumer_group_offsets(expected)[group].result(30)
        return all(partition.error is None for partition in result.topic_partitions)

    eventually(is_committed, f"offsets of {group}", seconds=30, every=0.2)


def committed_by(stack: Stack, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Missing offsets are negative."""
    requests = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, value) for value in range(partitions)])]
    result = stack.admin.list_consumer_group_offsets(requests)[group].result(30)
    return {partition.partition: partition.offset for partition in result.topic_partitions}
