"""ListOffsets and OffsetForLeaderEpoch: offsets by timestamp or leader epoch."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Request, Service
from archiver.serve.reading import ServedTopic
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
_KNOWN_SINCE: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The first version in which each of these is allowed."""
_BEGINNINGS: Final = (EARLIEST, EARLIEST_LOCAL)
_KNOWN_ENDS: Final = (LATEST, *_BEGINNINGS)
"""These need no search in the table."""
_NONE: Final = -1
_WITH_NOT_AVAILABLE: Final = 5
"""From this version on, clients know OFFSET_NOT_AVAILABLE (KIP-207)."""


async def list_offsets(service: Service, request: Request) -> Values:
    """Tiered offsets are answered with none, as in Kafka."""
    topics = []
    repeated = await _repeated(request)
    named_topics = [(named, await service.topic(named.name)) async for named in request.in_turns(request.body.topics)]
    looked = await _looked(
        service, [(topic, _needs_end(topic, named.partitions)) for named, topic in named_topics if topic is not None]
    )
    async for named, topic in request.in_turns(named_topics):
        if topic is None:
            error = service.without(named.name)
            partitions: list[Values] = await request.listed(
                {"partition_index": partition.partition_index, "error_code": error} for partition in named.partitions
            )
        else:
            lagging = None if looked[topic] else _lagging(request)
            partitions = [
                await _asked(
                    service,
                    request,
                    topic,
                    partition,
                    lagging=lagging,
                    is_repeated=(named.name, partition.partition_index) in repeated,
                )
                async for partition in request.in_turns(named.partitions)
            ]
        topics.append({"name": named.name, "partitions": partitions})
    return {"topics": topics}


async def offset_for_leader_epoch(service: Service, request: Request) -> Values:
    topics = []
    named_topics = [(named, await service.topic(named.topic)) async for named in request.in_turns(request.body.topics)]
    looked = await _looked(service, [(topic, True) for _, topic in named_topics if topic is not None])
    async for named, topic in request.in_turns(named_topics):
        if topic is None:
            error = service.without(named.topic)
            partitions: list[Values] = await request.listed(
                {"partition": partition.partition, "error_code": error} for partition in named.partitions
            )
        else:
            lagging = None if looked[topic] else ErrorCode.kafka_storage_error
            asked = request.in_turns(named.partitions)
            partitions = [
                await service.searches.run(
                    request.client.turns.name,
                    _epoch_end(topic, partition.partition, partition.leader_epoch, lagging),
                )
                async for partition in asked
            ]
        topics.append({"topic": named.topic, "partitions": partitions})
    return {"topics": topics}


async def _repeated(request: Request) -> set[tuple[str, int]]:
    topics = request.body.topics
    places = ((topic.name, partition.partition_index) for topic in topics for partition in topic.partitions)
    seen: set[tuple[str, int]] = set()
    repeated: set[tuple[str, int]] = set()
    async for pair in request.in_turns(places):
        (repeated if pair in seen else seen).add(pair)
    return repeated


async def _asked(
    service: Service,
    request: Request,
    topic: ServedTopic,
    asked: Any,
    *,
    lagging: ErrorCode | None,
    is_repeated: bool,
) -> Values:
    if is_repeated:
        return {"partition_index": asked.partition_index, "error_code": ErrorCode.invalid_request}
    if not _knows(request, asked.timestamp):
        return {"partition_index": asked.partition_index, "error_code": ErrorCode.unsupported_version}
    search = _found(topic, asked.partition_index, asked.timestamp, lagging)
    return await (search if asked.timestamp in _KNOWN_ENDS else service.searches.run(request.client.turns.name, search))


def _needs_end(topic: ServedTopic, partitions: Sequence[Any]) -> bool:
    return not partitions or any(
        asked.timestamp not in _BEGINNINGS or asked.partition_index >= topic.partitions for asked in partitions
    )


async def _looked(service: Service, asked: Iterable[tuple[ServedTopic, bool]]) -> Mapping[ServedTopic, bool]:
    """Look at each table once. False if another node may have a newer end and the refresh failed.

    An end that goes back would look like a truncated log.
    """
    needs_end: dict[ServedTopic, bool] = {}
    for topic, needs in asked:
        needs_end[topic] = needs or needs_end.get(topic, False)
    may_lag = service.cluster.may_lag
    looks = (_current(topic, is_urgent=needs and may_lag) for topic, needs in needs_end.items())
    return dict(zip(needs_end, await asyncio.gather(*looks), strict=True))


async def _current(topic: ServedTopic, *, is_urgent: bool) -> bool:
    if is_urgent:
        return await topic.caught_up()
    await topic.fresh()
    return True


def _knows(request: Request, time: int) -> bool:
    return time >= EARLIEST or request.version >= _KNOWN_SINCE.get(time, math.inf)


def _lagging(request: Request) -> ErrorCode:
    is_known = request.version >= _WITH_NOT_AVAILABLE
    return ErrorCode.offset_not_available if is_known else ErrorCode.leader_not_available


async def _found(topic: ServedTopic, partition: int, time: int, lagging: ErrorCode | None) -> Values:
    answer: dict[str, Any] = {"partition_index": partition, "error_code": ErrorCode.none}
    if not 0 <= partition < topic.partitions:
        return answer | {"error_code": ErrorCode.unknown_topic_or_partition}
    if lagging is not None and time not in _BEGINNINGS:
        return answer | {"error_code": lagging}
    try:
        position = await _place(topic, partition, time)
    except ContextError as error:
        _LOG.warning("offsets of %s-%d by time %d can't be found", topic.name, partition, time, exc_info=error)
        return answer | {"error_code": error_of(error)}
    if position is None:
        return answer
    offset, timestamp, epoch = position
    return answer | {"offset": offset, "timestamp": timestamp, "leader_epoch": epoch}


async def _place(topic: ServedTopic, partition: int, time: int) -> tuple[int, int, int] | None:
    match time:
        case _ if time == LATEST:
            return topic.end(partition), _NONE, topic.leader_epoch(partition)
        case _ if time in _BEGINNINGS:
            return await topic.start(partition), _NONE, _NONE
        case _ if time == MAX_TIMESTAMP:
            return await topic.latest_time(partition)
        case _ if time < 0:
            return None
        case _:
            return await topic.since(partition, time)


async def _epoch_end(topic: ServedTopic, partition: int, epoch: int, lagging: ErrorCode | None) -> Values:
    answer: dict[str, Any] = {"partition": partition, "error_code": ErrorCode.none}
    if not 0 <= partition < topic.partitions:
        return answer | {"error_code": ErrorCode.unknown_topic_or_partition}
    if lagging is not None:
        return answer | {"error_code": lagging}
    try:
        last_epoch, end = await topic.epoch_end(partition, epoch)
    except ContextError as error:
        _LOG.warning("the end of epoch %d of %s-%d can't be found", epoch, topic.name, partition, exc_info=error)
        return answer | {"error_code": error_of(error)}
    return answer | {"leader_epoch": last_epoch, "end_offset": end}


def error_of(error: ContextError) -> ErrorCode:
    """Without an error, clients skip records."""
    return ErrorCode.kafka_storage_error if error.retryable else ErrorCode.unknown_server_error
