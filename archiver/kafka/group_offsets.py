"""Committed offsets of consumer groups.

Not by librdkafka's admin client, which crashes after a coordinator moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from kafka import errors as kafka
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from archiver.errors import AccessDenied
from archiver.kafka.broker import BrokerClient
from archiver.kafka.protocol_errors import with_retries

_GROUPS: Final = 0
_FIND_BY_KEY: Final = 3
_FETCH_OF_ONE_GROUP: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    offset: int
    metadata: str = ""


def committed_offsets(
    brokers: BrokerClient, group: str, topic: str, partitions: Iterable[int]
) -> dict[int, CommittedOffset]:
    """Waits for open transactions. Raises as BrokerClient, also for single partitions."""
    topic_partitions = sorted(set(partitions))
    if not topic_partitions:
        return {}

    def attempt() -> dict[int, CommittedOffset]:
        try:
            return _asked(brokers, group, topic, topic_partitions)
        except kafka.UnknownBrokerIdError:  # the coordinator is a broker that came after the last description
            brokers.leaders.refresh((topic,))
            raise

    try:
        return with_retries(brokers.options, attempt, group=group, topic=topic)
    except AccessDenied as error:
        if not isinstance(error.__cause__, kafka.AuthorizationError):
            raise
        raise AccessDenied(
            f"The broker refuses: {error.__cause__}. Give the principal DESCRIBE on the group and on the topic",
            **error.context,
        ) from error


def every_committed_offset(brokers: BrokerClient, group: str) -> dict[str, dict[int, CommittedOffset]]:
    """Raises as BrokerClient."""

    def attempt() -> Any:
        try:
            answer = _answer(brokers, group, None)
            for about in answer.topics:
                for partition in about.partitions:
                    _check(partition.error_code, f"{about.name}, partition {partition.partition_index}")
        except kafka.UnknownBrokerIdError:
            brokers.cluster_id()  # describes the cluster again
            raise
        return answer

    answer = with_retries(brokers.options, attempt, group=group)
    return {
        str(about.name): {
            int(partition.partition_index): CommittedOffset(
                offset=int(partition.committed_offset), metadata=partition.metadata or ""
            )
            for partition in sorted(about.partitions, key=lambda entry: entry.partition_index)
            if partition.committed_offset >= 0
        }
        for about in sorted(answer.topics, key=lambda entry: entry.name)
    }


def _answer(brokers: BrokerClient, group: str, topics: Any) -> Any:
    coordinator = brokers.ask_any(lambda: FindCoordinatorRequest(key=group, key_type=_GROUPS, max_version=_FIND_BY_KEY))
    _check(coordinator.error_code)
    request = OffsetFetchRequest(
        group_id=group,
        topics=topics,
        require_stable=True,  # brokers before 2.5 don't have the field
        max_version=_FETCH_OF_ONE_GROUP,
    )
    answer = brokers.ask(coordinator.node_id, request)
    _check(answer.error_code)
    return answer


def _asked(brokers: BrokerClient, group: str, topic: str, partitions: list[int]) -> dict[int, CommittedOffset]:
    about = OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=partitions)
    answer = _answer(brokers, group, [about])
    answered: dict[int, Any] = {
        partition.partition_index: partition
        for about in answer.topics
        if about.name == topic
        for partition in about.partitions
    }
    for partition, entry in answered.items():
        _check(entry.error_code, f"partition {partition}")
    if lacking := [partition for partition in partitions if partition not in answered]:
        raise kafka.UnknownError(f"the answer leaves out partitions {lacking}")
    return {
        partition: CommittedOffset(offset=int(entry.committed_offset), metadata=entry.metadata or "")
        for partition, entry in sorted(answered.items())
        if entry.committed_offset >= 0
    }


def _check(error_code: int | None, *about: str) -> None:
    error = kafka.for_code(error_code or 0)
    if error is not kafka.NoError:
        raise error(*about)
