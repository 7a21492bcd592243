"""Requests to partition leaders, for many topics at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from kafka.protocol.consumer import ListOffsetsRequest, OffsetForLeaderEpochRequest

At: TypeAlias = Literal["earliest", "earliest_local", "latest_stable", "high_watermark"]
"""An offset of a log: the first one, the first one on the leader's disk, the end of committed records, or the end."""

RequestOf: TypeAlias = Callable[[Mapping[str, Sequence[int]]], Any]
"""A function that makes a request about some partitions of some topics."""

EpochOf: TypeAlias = Callable[[str, int], int]
"""A function that gives the last known leader epoch of a partition."""

NOWHERE: Final = -1
"""The offset in an answer if the leader has none."""

PARTITIONS_AT_ONCE: Final = 2_000
"""A request is full after this many partitions. The last topic in it may bring it above."""

_CONSUMER: Final = -1
_EARLIEST: Final = -2
_EARLIEST_LOCAL: Final = -4
_LATEST: Final = -1
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1


def offsets_request(at: At | int, epoch_of: EpochOf, timeout_ms: int) -> RequestOf:
    match at:
        case "earliest":
            timestamp, isolation = _EARLIEST, _READ_COMMITTED
        case "earliest_local":
            timestamp, isolation = _EARLIEST_LOCAL, _READ_COMMITTED
        case "latest_stable":
            timestamp, isolation = _LATEST, _READ_COMMITTED
        case "high_watermark":
            timestamp, isolation = _LATEST, _READ_UNCOMMITTED
        case _:
            timestamp, isolation = max(at, 0), _READ_COMMITTED
    about, part = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition

    def topic(name: str, partitions: Sequence[int]) -> Any:
        asked = [
            part(partition_index=partition, current_leader_epoch=epoch_of(name, partition), timestamp=timestamp)
            for partition in partitions
        ]
        return about(name=name, partitions=asked)

    def request(asked: Mapping[str, Sequence[int]]) -> Any:
        topics = [topic(name, partitions) for name, partitions in asked.items()]
        return ListOffsetsRequest(replica_id=_CONSUMER, isolation_level=isolation, topics=topics, timeout_ms=timeout_ms)

    return request


def epochs_request(epochs: Mapping[str, Mapping[int, int]], epoch_of: EpochOf) -> RequestOf:
    about = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    part = about.OffsetForLeaderPartition

    def topic(name: str, partitions: Sequence[int]) -> Any:
        asked = [
            part(
                partition=partition,
                current_leader_epoch=epoch_of(name, partition),
                leader_epoch=epochs[name][partition],
            )
            for partition in partitions
        ]
        return about(topic=name, partitions=asked)

    def request(asked: Mapping[str, Sequence[int]]) -> Any:
        topics = [topic(name, partitions) for name, partitions in asked.items()]
        return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=topics)

    return request


def portions(led: Mapping[str, Sequence[int]]) -> Iterator[dict[str, Sequence[int]]]:
    """Splits no topic."""
    some, count = dict[str, Sequence[int]](), 0
    for topic, partitions in led.items():
        some[topic] = partitions
        count += len(partitions)
        if count >= PARTITIONS_AT_ONCE:
            yield some
            some, count = {}, 0
    if some:
        yield some


def named(response: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    for about in response.topics:
        yield str(about.topic if hasattr(about, "topic") else about.name), about.partitions
