"""Permissions for requests about groups. A hidden group is answered like a missing one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from archiver.access import Operation
from archiver.serve.kafka.guards import Answer, Handler, by_topics, denied_topic, split, values, with_body
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Request, Service

_GROUP: Final = 0
_WITH_GROUPS: Final = 8
_WITH_ERROR: Final = 2
_DENIED: Final = ErrorCode.group_authorization_failed
_TEXT: Final = "the principal has no right to this group"


async def find_coordinator(handler: Handler, service: Service, request: Request) -> Answer:
    """FindCoordinator needs DESCRIBE of each group."""
    body = request.body
    nowhere = {"node_id": -1, "host": "", "port": -1, "error_code": _DENIED, "error_message": _TEXT}
    if getattr(body, "key_type", _GROUP) != _GROUP:
        return await handler(service, request)
    if not hasattr(body, "coordinator_keys"):
        return await handler(service, request) if _may(request, body.key, Operation.DESCRIBE) else nowhere
    allowed, refused = await _split(request, body.coordinator_keys, Operation.DESCRIBE)
    answer = values(await handler(service, with_body(request, coordinator_keys=allowed)))
    denied = await request.listed({**nowhere, "key": key} for key in refused)
    return {**answer, "coordinators": [*answer["coordinators"], *denied]}


async def join_group(handler: Handler, service: Service, request: Request) -> Answer:
    """JoinGroup needs READ of the group."""
    refusal: Values = {
        "error_code": _DENIED,
        "generation_id": -1,
        "protocol_type": None,
        "protocol_name": None if request.version >= 7 else "",  # noqa: PLR2004 - since then there may be none
        "leader": "",
        "skip_assignment": False,
        "member_id": request.body.member_id,
        "members": (),
    }
    return await _by_group(handler, service, request, Operation.READ, refusal)


async def sync_group(handler: Handler, service: Service, request: Request) -> Answer:
    """SyncGroup needs READ of the group."""
    refusal = {"error_code": _DENIED, "protocol_type": None, "protocol_name": None, "assignment": b""}
    return await _by_group(handler, service, request, Operation.READ, refusal)


async def heartbeat(handler: Handler, service: Service, request: Request) -> Answer:
    """Heartbeat needs READ of the group."""
    return await _by_group(handler, service, request, Operation.READ, {"error_code": _DENIED})


async def leave_group(handler: Handler, service: Service, request: Request) -> Answer:
    """LeaveGroup needs READ of the group."""
    return await _by_group(handler, service, request, Operation.READ, {"error_code": _DENIED, "members": ()})


async def describe_groups(handler: Handler, service: Service, request: Request) -> Answer:
    """DescribeGroups needs DESCRIBE of each group."""
    allowed, refused = await _split(request, request.body.groups, Operation.DESCRIBE)
    answer = values(await handler(service, with_body(request, groups=allowed)))
    blank = {"error_code": _DENIED, "group_state": "", "protocol_type": "", "protocol_data": "", "members": ()}
    denied = await request.listed({**blank, "group_id": group_id} for group_id in refused)
    return {**answer, "groups": [*answer["groups"], *denied]}


async def list_groups(handler: Handler, service: Service, request: Request) -> Answer:
    """ListGroups lists the groups that the principal may DESCRIBE."""
    answer = values(await handler(service, request))
    groups = request.in_turns(answer["groups"])
    visible = [group async for group in groups if _may(request, group["group_id"], Operation.DESCRIBE)]
    return {**answer, "groups": visible}


async def delete_groups(handler: Handler, service: Service, request: Request) -> Answer:
    """DeleteGroups needs DELETE of each group."""
    allowed, refused = await _split(request, request.body.groups_names, Operation.DELETE)
    answer = values(await handler(service, with_body(request, groups_names=allowed)))
    denied = await request.listed({"group_id": group_id, "error_code": _DENIED} for group_id in refused)
    return {**answer, "results": [*answer["results"], *denied]}


async def beat(handler: Handler, service: Service, request: Request) -> Answer:
    """ConsumerGroupHeartbeat needs READ of the group, DESCRIBE of named and READ of matched topics."""
    body = request.body
    refusal = {"member_id": body.member_id, "member_epoch": 0, "heartbeat_interval": 0, "assignment": None}
    if not _may(request, body.group_id, Operation.READ):
        return refusal | {"error_code": _DENIED, "error_message": _TEXT}
    named = body.subscribed_topic_names or ()
    if not all([request.access.topic(topic, Operation.DESCRIBE) async for topic in request.in_turns(named)]):
        text = "the principal has no right to a topic that it names"
        return refusal | {"error_code": ErrorCode.topic_authorization_failed, "error_message": text}
    return await handler(service, request)


async def described(handler: Handler, service: Service, request: Request) -> Answer:
    """ConsumerGroupDescribe needs DESCRIBE of each group, and of each topic that its members read."""
    allowed, refused = await _split(request, request.body.group_ids, Operation.DESCRIBE)
    answer = values(await handler(service, with_body(request, group_ids=allowed)))
    described = []
    async for group in request.in_turns(answer["groups"]):
        may_see = all(request.access.topic(name, Operation.DESCRIBE) for name in _topics_of(group))
        described.append(group if may_see else _undescribed(group["group_id"], ErrorCode.topic_authorization_failed))
    denied = await request.listed(_undescribed(group_id, _DENIED) for group_id in refused)
    return {**answer, "groups": [*described, *denied]}


async def offset_commit(handler: Handler, service: Service, request: Request) -> Answer:
    """OffsetCommit needs READ of the group, and of each topic."""
    if not _may(request, request.body.group_id, Operation.READ):
        topics = request.in_turns(request.body.topics)
        return {"topics": [await _denied(request, topic, error=_DENIED) async for topic in topics]}
    return await by_topics(handler, service, request, Operation.READ, partial(_denied, request))


async def offset_fetch(handler: Handler, service: Service, request: Request) -> Answer:
    """OffsetFetch needs DESCRIBE of each group, and of each topic."""
    body = request.body
    if request.version < _WITH_GROUPS:
        if not _may(request, body.group_id, Operation.DESCRIBE):
            topics = request.in_turns(body.topics if request.version < _WITH_ERROR else ())
            return {
                "error_code": _DENIED,
                "topics": [await _unfetched(request, topic, _DENIED) async for topic in topics],
            }
        asked, refused = await _fetchable(service, request, body.topics)
        answer = values(await handler(service, with_body(request, topics=asked)))
        return {**answer, "topics": await _told(request, answer["topics"], refused)}
    groups: list[Values] = []
    async for group in request.in_turns(body.groups):
        if not _may(request, group.group_id, Operation.DESCRIBE):
            groups.append({"group_id": group.group_id, "error_code": _DENIED, "topics": []})
            continue
        asked, refused = await _fetchable(service, request, group.topics)
        whole = values(await handler(service, with_body(request, groups=(_with_topics(group, asked),))))["groups"][0]
        groups.append({**whole, "topics": await _told(request, whole["topics"], refused)})
    return {"groups": groups}


async def offset_delete(handler: Handler, service: Service, request: Request) -> Answer:
    """OffsetDelete needs DELETE of the group, and READ of each topic."""
    if not _may(request, request.body.group_id, Operation.DELETE):
        return {"error_code": _DENIED, "topics": []}
    return await by_topics(handler, service, request, Operation.READ, partial(_denied, request))


async def _by_group(
    handler: Handler, service: Service, request: Request, operation: Operation, refusal: Values
) -> Answer:
    return await handler(service, request) if _may(request, request.body.group_id, operation) else refusal


def _undescribed(group_id: str, error: ErrorCode) -> Values:
    return {
        "error_code": error,
        "error_message": None,
        "group_id": group_id,
        "group_state": "",
        "group_epoch": 0,
        "assignment_epoch": 0,
        "assignor_name": "",
        "members": (),
    }


def _topics_of(group: Values) -> set[str]:
    topics: set[str] = set()
    for member in group["members"]:
        topics.update(member["subscribed_topic_names"])
        for assignment in (member["assignment"], member["target_assignment"]):
            topics.update(topic["topic_name"] for topic in assignment["topic_partitions"] if topic["topic_name"])
    return topics


def _may(request: Request, group_id: str, operation: Operation) -> bool:
    return request.access.group(group_id, operation)


async def _split(request: Request, groups: Iterable[str], operation: Operation) -> tuple[tuple[str, ...], list[str]]:
    allowed: list[str] = []
    refused: list[str] = []
    async for group in request.in_turns(groups):
        (allowed if _may(request, group, operation) else refused).append(group)
    return tuple(allowed), refused


async def _denied(request: Request, topic: Any, *, error: ErrorCode = ErrorCode.topic_authorization_failed) -> Values:
    numbers = (partition.partition_index for partition in topic.partitions)
    return await denied_topic(request, topic, numbers, error_code=error)


async def _unfetched(request: Request, topic: Any, error: ErrorCode = ErrorCode.topic_authorization_failed) -> Values:
    return await denied_topic(
        request,
        topic,
        topic.partition_indexes,
        committed_offset=-1,
        committed_leader_epoch=-1,
        metadata="",
        error_code=error,
    )


async def _fetchable(service: Service, request: Request, topics: Any) -> tuple[Any, list[Any]]:
    return (None, []) if topics is None else await split(service, request, topics, Operation.DESCRIBE)


async def _told(request: Request, topics: Iterable[Values], refused: Iterable[Any]) -> list[Values]:
    seen = await request.listed(
        topic for topic in topics if not topic["name"] or request.access.topic(topic["name"], Operation.DESCRIBE)
    )
    return [*seen, *[await _unfetched(request, topic) async for topic in request.in_turns(refused)]]


def _with_topics(group: Any, topics: Any) -> Any:
    return replace(group, topics=topics)
