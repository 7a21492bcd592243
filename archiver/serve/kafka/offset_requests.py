"""OffsetCommit, OffsetFetch and OffsetDelete, by topic name, from version 10 on by topic id."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from archiver.serve.groups import ClassicGroup, CommittedOffsets
from archiver.serve.kafka.group_topics import subscribed
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.refused_offsets import late, no_offsets
from archiver.serve.kafka.service import Request, Service
from archiver.serve.reading import ServedTopic
from catalog.errors import OffsetBudgetReached
from catalog.registry import GroupOffset
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)
_BY_ID: Final = 10
_WITH_GROUPS: Final = 8
_NONE: Final = -1
_CONSUMERS: Final = "consumer"
_ROW_BYTES: Final = 240
"""What an offset takes in the registry beside its names and its metadata, about."""
_NAMED_IN_A_ROW: Final = 2
"""A row and its entry in the index have the names of group and topic."""


async def offset_commit(service: Service, request: Request) -> Values:
    """The answer means that the offsets are stored."""
    body = request.body
    asked = [(named, await _topic(service, request, named)) async for named in request.in_turns(body.topics)]
    await _look_for_partitions(service, asked)
    refused = service.coordinator.commit_error(
        body.group_id,
        getattr(body, "member_id", ""),
        getattr(body, "group_instance_id", None),
        getattr(body, "generation_id_or_member_epoch", _NONE),
        partitions=await request.listed(
            (topic.topic_id, partition.partition_index)
            for named, topic in asked
            if topic
            for partition in named.partitions
        ),
        version=request.version,
    )
    offsets: dict[tuple[str, int], GroupOffset] = {}
    answers = []
    for named, topic in asked:
        partitions = []
        async for partition in request.in_turns(named.partitions):
            error = refused
            if error is ErrorCode.none:
                error = _absent(service, request, named) if topic is None else _commit_error(service, topic, partition)
            if error is ErrorCode.none and topic is not None:
                offsets[topic.name, partition.partition_index] = GroupOffset(
                    topic_id=topic.topic_id,
                    offset=partition.committed_offset,
                    leader_epoch=getattr(partition, "committed_leader_epoch", _NONE),
                    metadata=partition.committed_metadata or "",
                )
            partitions.append({"partition_index": partition.partition_index, "error_code": error})
        answers.append({**_named(named), "partitions": partitions})
    if offsets:
        try:
            await _keep(service, request, offsets)
        except OffsetBudgetReached as error:
            _LOG.debug("offsets of group %s are refused", body.group_id, exc_info=error)
            _refuse(answers, ErrorCode.invalid_commit_offset_size)
        except ContextError as error:
            _LOG.warning("offsets of group %s can't be kept", body.group_id, exc_info=error)
            _refuse(answers, ErrorCode.coordinator_not_available)
    return {"topics": answers}


async def commit_in_time(service: Service, request: Request) -> None:
    """Delay a commit beyond the registry's capacity, before it is queued."""
    size, group_bytes = 0, len(request.body.group_id.encode())
    for topic in request.body.topics:
        row_bytes = _ROW_BYTES + _NAMED_IN_A_ROW * (group_bytes + len(getattr(topic, "name", "")))
        async for partition in request.in_turns(topic.partitions):
            size += row_bytes + len((partition.committed_metadata or "").encode())
    request.client.turns.end_long_work()
    wait = service.quotas.commit_wait(service.budget(request).owner, size, asyncio.get_running_loop().time())
    await late(wait, service.ending)


async def _keep(service: Service, request: Request, offsets: CommittedOffsets) -> None:
    request.client.turns.end_long_work()  # what waits for the registry holds up no other request
    budget = service.budget(request)
    commit = partial(service.offsets.commit, budget=budget.offsets, claim=request.claim)
    try:
        await service.commits.commit(
            partial(service.kept, commit), request.body.group_id, offsets, owner=budget.owner, duty=request.duty
        )
    except OffsetBudgetReached as error:
        over_groups = error.context["groups"] > error.context["most_groups"]
        service.budgets.reached(budget.owner, "offset_groups" if over_groups else "offset_size")
        raise


def _refuse(told: list[Any], error: ErrorCode) -> None:
    for topic in told:
        for partition in topic["partitions"]:
            partition["error_code"] = partition["error_code"] or error


async def offset_fetch(service: Service, request: Request) -> Values:
    body = request.body
    if request.version >= _WITH_GROUPS:
        return {"groups": [await _of_member(service, request, group) async for group in request.in_turns(body.groups)]}
    return await _of_member(service, request, body)


async def offset_delete(service: Service, request: Request) -> Values:
    """Only for topics to which no member of the group subscribes."""
    body = request.body
    nothing: dict[str, Any] = {"topics": []}
    group = service.coordinator.groups.get(body.group_id)
    if isinstance(group, ClassicGroup) and group.protocol_type != _CONSUMERS:
        return nothing | {"error_code": ErrorCode.non_empty_group}
    read = await subscribed(group, service.topics, request.client.turns)
    partitions = await request.listed(
        (topic.name, partition.partition_index)
        for topic in body.topics
        if topic.name not in read
        for partition in topic.partitions
    )
    try:
        if group is None and body.group_id not in await service.kept(service.offsets.groups):
            return nothing | {"error_code": ErrorCode.group_id_not_found}
        await service.kept(partial(service.offsets.delete, claim=request.claim), body.group_id, partitions)
    except ContextError:
        return nothing | {"error_code": ErrorCode.coordinator_not_available}
    topics = [
        {
            "name": topic.name,
            "partitions": await request.listed(
                {
                    "partition_index": partition.partition_index,
                    "error_code": ErrorCode.group_subscribed_to_topic if topic.name in read else ErrorCode.none,
                }
                for partition in topic.partitions
            ),
        }
        async for topic in request.in_turns(body.topics)
    ]
    return {"error_code": ErrorCode.none, "topics": topics}


async def _of_member(service: Service, request: Request, asked: Any) -> dict[str, Any]:
    error = service.coordinator.fetch_error(
        asked.group_id, getattr(asked, "member_id", None), getattr(asked, "member_epoch", _NONE)
    )
    if error is not ErrorCode.none:
        return await no_offsets(request, asked, error)
    return await _of_group(service, request, asked)


async def _of_group(service: Service, request: Request, asked: Any) -> dict[str, Any]:
    group_id: str = asked.group_id
    topics: Sequence[Any] | None = asked.topics
    try:
        offsets = await service.kept(service.offsets.load, group_id)
    except ContextError as error:
        _LOG.warning("offsets of group %s can't be read", group_id, exc_info=error)
        return await no_offsets(request, asked, ErrorCode.coordinator_load_in_progress)
    answers = []
    if topics is None:
        numbers: dict[str, list[int]] = {}
        for name, number in offsets:
            numbers.setdefault(name, []).append(number)
        async for name in request.in_turns(sorted(numbers)):
            topic = await service.topic(name)
            if topic is None and service.topics.is_away(name):
                return await _away(request, asked, name)
            if topic is not None:
                named = {"name": name, "topic_id": topic.topic_id}
                answers.append(await _offsets(request, named, topic, numbers[name], offsets))
    else:
        async for topic_asked in request.in_turns(topics):
            topic = await _topic(service, request, topic_asked)
            if topic is None and _is_owed(service, request, topic_asked, offsets):
                return await _away(request, asked, _named(topic_asked)["name"] or _named(topic_asked)["topic_id"])
            answers.append(await _offsets(request, _named(topic_asked), topic, topic_asked.partition_indexes, offsets))
    return {"group_id": group_id, "error_code": ErrorCode.none, "topics": answers}


def _is_owed(service: Service, request: Request, named: Any, known: Any) -> bool:
    has_some = any((_named(named)["name"], partition) in known for partition in named.partition_indexes)
    return has_some or (request.version >= _BY_ID and _may_be_away(service, request, named))


async def _away(request: Request, asked: Any, topic: object) -> dict[str, Any]:
    """Refuse all offsets: without one topic's, a client would start at its begin or end."""
    _LOG.warning("offsets of group %s aren't given: topic %s can't be opened", asked.group_id, topic)
    return await no_offsets(request, asked, ErrorCode.coordinator_load_in_progress)


async def _offsets(
    request: Request, named: dict[str, Any], topic: ServedTopic | None, partitions: Sequence[int], known: Any
) -> dict[str, Any]:
    is_unknown = topic is None and request.version >= _BY_ID
    error = ErrorCode.unknown_topic_id if is_unknown else ErrorCode.none
    answers = []
    async for number in request.in_turns(partitions):
        kept = known.get((topic.name, number)) if topic is not None else None
        if kept is not None and topic is not None and kept.topic_id != topic.topic_id:
            kept = None  # of another topic of this name
        answers.append(
            {
                "partition_index": number,
                "committed_offset": kept.offset if kept else _NONE,
                "committed_leader_epoch": kept.leader_epoch if kept else _NONE,
                "metadata": kept.metadata if kept else "",
                "error_code": error,
            }
        )
    return {**named, "partitions": answers}


async def _topic(service: Service, request: Request, named: Any) -> ServedTopic | None:
    if request.version >= _BY_ID:
        return await service.topic(None, named.topic_id)
    return await service.topic(named.name)


def _named(topic: Any) -> dict[str, Any]:
    return {"name": getattr(topic, "name", None), "topic_id": getattr(topic, "topic_id", None)}


async def _look_for_partitions(service: Service, asked: Sequence[tuple[Any, ServedTopic | None]]) -> None:
    if not service.cluster.may_lag:
        return
    behind = {
        topic.topic_id: topic
        for named, topic in asked
        if topic is not None and any(partition.partition_index >= topic.partitions for partition in named.partitions)
    }
    await asyncio.gather(*(topic.caught_up() for topic in behind.values()))


def _absent(service: Service, request: Request, named: Any) -> ErrorCode:
    if _may_be_away(service, request, named):
        return ErrorCode.coordinator_load_in_progress  # clients commit again after this one
    return ErrorCode.unknown_topic_id if request.version >= _BY_ID else ErrorCode.unknown_topic_or_partition


def _may_be_away(service: Service, request: Request, named: Any) -> bool:
    by_id = request.version >= _BY_ID
    names = service.topics.troubles if by_id else (named.name,)
    return any(map(service.topics.is_away, names))


def _commit_error(service: Service, topic: ServedTopic, wanted: Any) -> ErrorCode:
    if not 0 <= wanted.partition_index < topic.partitions:
        return ErrorCode.unknown_topic_or_partition
    if wanted.committed_offset < 0:
        return ErrorCode.invalid_request
    if len((wanted.committed_metadata or "").encode()) > service.most_metadata_bytes:
        return ErrorCode.offset_metadata_too_large
    return ErrorCode.none
