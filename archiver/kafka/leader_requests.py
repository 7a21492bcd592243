"""Requests that only the leader of a partition answers, about as many topics as one broker leads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from kafka.protocol.consumer import ListOffsetsRequest, OffsetForLeaderEpochRequest

At: TypeAlias = Literal["earliest", "latest_stable", "high_watermark"]

RequestOf: TypeAlias = Callable[[Mapping[str, Sequence[int]]], Any]
"""Makes a request about some partitions of topics."""

EpochOf: TypeAlias = Callable[[str, int], int]
"""Gives the epoch in which a partition's leader is believed to lead."""

NOWHERE: Final = -1
"""The offset in an answer of a leader that has none to give."""

PARTITIONS_AT_ONCE: Final = 2_000
"""A request is about so many partitions, and those that the last topic has beyond."""

_CONSUMER: Final = -1
_EARLIEST: Final = -2
_LATEST: Final = -1
_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1


def offsets_request(at: At | int, epoch_of: EpochOf, timeout_ms: int) -> RequestOf:
    """Asks where logs begin or end, or for the first offset at or after a time in ms since 1970."""
    match at:
        case "earliest":
            timestamp, isolation = _EARLIEST, _READ_COMMITTED
        case "latest_stable":
            timestamp, isolation = _LATEST, _READ_COMMITTED
        case "high_watermark":
            timestamp, isolation = _LATEST, _READ_UNCOMMITTED
        case _:
            timestamp, isolation = max(at, 0), _READ_COMMITTED
    about, part = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition

    def topic(name: str, partitions: Sequence[int]) -> Any:
        asked = [
            part(partition_index=each, current_leader_epoch=epoch_of(name, each), timestamp=timestamp)
            for each in partitions
        ]
        return about(name=name, partitions=asked)

    def request(asked: Mapping[str, Sequence[int]]) -> Any:
        topics = [topic(name, partitions) for name, partitions in asked.items()]
        return ListOffsetsRequest(replica_id=_CONSUMER, isolation_level=isolation, topics=topics, timeout_ms=timeout_ms)

    return request


def epochs_request(epochs: Mapping[str, Mapping[int, int]], epoch_of: EpochOf) -> RequestOf:
    """Asks where leader epochs end, by topic and partition."""
    about = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    part = about.OffsetForLeaderPartition

    def topic(name: str, partitions: Sequence[int]) -> Any:
        asked = [
            part(partition=each, current_leader_epoch=epoch_of(name, each), leader_epoch=epochs[name][each])
            for each in partitions
        ]
        return about(topic=name, partitions=asked)

    def request(asked: Mapping[str, Sequence[int]]) -> Any:
        topics = [topic(name, partitions) for name, partitions in asked.items()]
        return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=topics)

    return request


def portions(led: Mapping[str, Sequence[int]]) -> Iterator[dict[str, Sequence[int]]]:
    """What one broker is to be asked, as requests of a bounded size about whole topics."""
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
    """A response's topics with what it says of their partitions; a topic's name is called `name` or `topic`."""
    for about in response.topics:
        yield str(about.topic if hasattr(about, "topic") else about.name), about.partitions
