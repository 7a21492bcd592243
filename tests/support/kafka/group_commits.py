"""Committed offsets of groups, by the admin client."""

from __future__ import annotations

import time

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from tests.support.servers.stack import Stack


def commit(stack: Stack, group: str, topic: str, offsets: dict[int, int]) -> None:
    places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    expected = [ConsumerGroupTopicPartitions(group, places)]
    deadline = time.monotonic() + 30
    while True:  # a cluster that has just started is still loading its coordinators
        result = stack.admin.alter_consumer_group_offsets(expected)[group].result(30)
        errors = [partition.error for partition in result.topic_partitions if partition.error is not None]
        if not errors:
            return
        assert time.monotonic() < deadline, errors
        time.sleep(0.2)


def committed_by(stack: Stack, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Return offsets by partition, negative if missing."""
    requests = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, value) for value in range(partitions)])]
    result = stack.admin.list_consumer_group_offsets(requests)[group].result(30)
    return {partition.partition: partition.offset for partition in result.topic_partitions}
