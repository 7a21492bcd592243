"""ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final
from uuid import UUID, uuid4

from kio.schema.errors import ErrorCode

from archiver.serve.groups import JOINING_EPOCH, Beat, ConsumerGroup, ConsumerMember, PartitionId, Topics
from archiver.serve.kafka.group_topics import names_by_id
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Request, Service

_CONSUMER_MEMBER: Final = 1
_WITH_OWN_IDS: Final = 1
"""From this version on, members make their ids themselves."""
_DEAD: Final = "Dead"


async def consumer_group_heartbeat(service: Service, request: Request) -> Values:
    body = request.body
    names = body.subscribed_topic_names
    topics = await service.group_topics.known(service.topics, names or ())
    pattern = _pattern(service, body, topics)
    if pattern:
        topics = await service.group_topics.matching(pattern, request.client.turns)
    rebalance = body.rebalance_timeout.total_seconds()
    beat = Beat(
        member_id=_member_id(request),
        epoch=body.member_epoch,
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        client_id=request.client_id,
        host=f"/{request.client.address.rpartition(':')[0]}",
        rebalance_seconds=rebalance if rebalance >= 0 else None,
        names=None if names is None else frozenset(names),
        pattern=getattr(body, "subscribed_topic_regex", None),
        assignor=body.server_assignor,
        owned=None if body.topic_partitions is None else frozenset(_partition_ids(body.topic_partitions)),
        rights=None if request.access.is_open else request.access,
        budget=service.budget(request),
    )
    beaten = service.coordinator.beat(body.group_id, beat, topics)
    return {
        "error_code": beaten.error,
        "error_message": beaten.message,
        "member_id": beaten.member_id,
        "member_epoch": beaten.epoch,
        "heartbeat_interval": round(service.coordinator.times.interval * 1000),
        "assignment": None if beaten.assigned is None else {"topic_partitions": _by_topic(beaten.assigned)},
    }


async def consumer_group_describe(service: Service, request: Request) -> Values:
    names = names_by_id(service.topics)
    return {
        "groups": [_described(service, group_id, names) async for group_id in request.in_turns(request.body.group_ids)]
    }


def _pattern(service: Service, body: Any, topics: Topics) -> str | None:
    pattern: str | None = getattr(body, "subscribed_topic_regex", None)
    group = service.coordinator.consumer(body.group_id)
    member = None if group is None else group.members.get(body.member_id)
    if pattern is None and member is not None and member.looked_up_in is not topics:
        return member.pattern
    return pattern


def _member_id(request: Request) -> str:
    body = request.body
    is_given_one = request.version < _WITH_OWN_IDS and body.member_epoch == JOINING_EPOCH
    return body.member_id or (str(uuid4()) if is_given_one else "")


def _described(service: Service, group_id: str, names: Mapping[UUID, str]) -> Values:
    group = service.coordinator.consumer(group_id)
    if group is None:
        return {
            "error_code": ErrorCode.group_id_not_found,
            "error_message": f"no members of {group_id} use the consumer protocol",
            "group_id": group_id,
            "group_state": _DEAD,
            "group_epoch": 0,
            "assignment_epoch": 0,
            "assignor_name": "",
            "members": (),
        }
    return {
        "error_code": ErrorCode.none,
        "error_message": None,
        "group_id": group_id,
        "group_state": group.state.value,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": group.assignor,
        "members": [_member(group, member, names) for member in group.members.values()],
    }


def _member(group: ConsumerGroup, member: ConsumerMember, names: Mapping[UUID, str]) -> Values:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.host,
        "subscribed_topic_names": sorted(member.names),
        "subscribed_topic_regex": member.pattern or None,
        "assignment": {"topic_partitions": _named(member.assigned, names)},
        "target_assignment": {"topic_partitions": _named(group.targets.get(member.member_id, ()), names)},
        "member_type": _CONSUMER_MEMBER,
    }


def _partition_ids(topics: Iterable[Any]) -> Iterable[PartitionId]:
    return ((topic.topic_id, number) for topic in topics if topic.topic_id is not None for number in topic.partitions)


def _by_topic(partition_ids: Collection[PartitionId]) -> list[dict[str, Any]]:
    numbers: dict[UUID, list[int]] = {}
    for topic, number in sorted(partition_ids):
        numbers.setdefault(topic, []).append(number)
    return [{"topic_id": topic, "partitions": tuple(numbers)} for topic, numbers in numbers.items()]


def _named(partition_ids: Collection[PartitionId], names: Mapping[UUID, str]) -> list[Values]:
    return [topic | {"topic_name": names.get(topic["topic_id"], "")} for topic in _by_topic(partition_ids)]
