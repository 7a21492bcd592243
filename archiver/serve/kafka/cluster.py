"""Metadata, DescribeCluster, DescribeTopicPartitions and FindCoordinator."""

from __future__ import annotations

from typing import Any, Final

from kio.schema.errors import ErrorCode

from archiver.serve.groups import is_group_id
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.refused_offsets import late
from archiver.serve.kafka.service import Request, Service
from archiver.serve.nodes import GroupStanding, Members, Node
from archiver.serve.reading import ServedTopic

_BROKERS: Final = 1
_LATER_EPOCH: Final = 1 << 30
"""The leader epoch of every partition.

Java takes metadata with an older epoch than its committed offset for stale, and waits for newer metadata: the archive
may lag behind the offset's cluster.
"""
_MOST_PARTITIONS: Final = 2000
_AWAY_SECONDS: Final = 0.5
"""Seconds before a client is answered that a topic can't be opened. librdkafka that joins a group repeats at once."""
_GROUP: Final = 0
_TRANSACTION: Final = 1


async def metadata(service: Service, request: Request) -> Values:
    service.topics.look_around()
    named = request.body.topics
    topics: list[ServedTopic | Values]
    if named is None or (not named and request.version == 0):
        topics = [*await service.topics.every(), *(_without(service, name) for name in service.topics.closed)]
    else:
        topics = [await _asked(service, request, topic) async for topic in request.in_turns(named)]
    if any(_is_away(topic) for topic in topics):
        request.client.turns.end_long_work()
        await late(_AWAY_SECONDS, service.ending)
    members = service.cluster.told  # after all waits, in which nodes may have come and gone
    return {
        "brokers": [_broker(node) for node in members.nodes],
        "cluster_id": service.cluster.cluster_id,
        "controller_id": _controller(members),
        "topics": [await _described(request, members, topic) async for topic in request.in_turns(topics)],
        "error_code": ErrorCode.none,
    }


async def describe_cluster(service: Service, request: Request) -> Values:
    members = service.cluster.told
    kind = getattr(request.body, "endpoint_type", _BROKERS)
    error = ErrorCode.none if kind == _BROKERS else ErrorCode.mismatched_endpoint_type
    return {
        "error_code": error,
        "error_message": None if kind == _BROKERS else "an archive has no controllers: ask for brokers",
        "endpoint_type": kind,
        "cluster_id": service.cluster.cluster_id,
        "controller_id": _controller(members),
        "brokers": [_broker(node) | {"broker_id": node.node_id, "is_fenced": False} for node in members.nodes]
        if kind == _BROKERS
        else [],
    }


async def describe_topic_partitions(service: Service, request: Request) -> Values:
    service.topics.look_around()
    names = sorted({topic.name for topic in request.body.topics}) or await service.topics.names()
    cursor = request.body.cursor
    left = max(1, min(request.body.response_partition_limit, _MOST_PARTITIONS))
    topics: list[Values] = []
    following = None
    async for name in request.in_turns(names):
        if cursor is not None and name < cursor.topic_name:
            continue
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        if left == 0:
            following = {"topic_name": name, "partition_index": first}
            break
        described = dict(await _described(request, service.cluster.told, await _named(service, name)))
        partitions = described["partitions"][max(0, first) :]
        topics.append({**described, "partitions": partitions[:left]})
        if len(partitions) > left:
            following = {"topic_name": name, "partition_index": first + left}
            break
        left -= len(partitions)
    return {"topics": topics, "next_cursor": following}


async def find_coordinator(service: Service, request: Request) -> Values:
    body = request.body
    kind = getattr(body, "key_type", _GROUP)
    keys = getattr(body, "coordinator_keys", ())
    if kind == _GROUP:
        await service.cluster.agree_on((*keys, getattr(body, "key", "")))
    return _found(service, kind, getattr(body, "key", "")) | {
        "coordinators": [_found(service, kind, key) | {"key": key} async for key in request.in_turns(keys)]
    }


def _found(service: Service, kind: int, key: str) -> dict[str, Any]:
    text = None
    if kind == _TRANSACTION:
        error = ErrorCode.transactional_id_authorization_failed
        text = "this is an archive, which can only be read: write to the Kafka cluster that is archived"
    elif kind != _GROUP:
        error, text = ErrorCode.invalid_request, "only groups have a coordinator here"
    elif key and not is_group_id(key):
        error, text = ErrorCode.invalid_group_id, "no group can have this id"
    elif (members := _coordinating(service, key)) is None:
        error, text = ErrorCode.coordinator_not_available, "the registry is away: without it groups are not coordinated"
    else:
        node = members.coordinator(key)
        return {"error_code": ErrorCode.none, "error_message": None} | _broker(node)
    return {"error_code": error, "error_message": text, "node_id": -1, "host": "", "port": -1}


def _coordinating(service: Service, key: str) -> Members | None:
    cluster = service.cluster
    return cluster.others if cluster.standing(key) is GroupStanding.UNKNOWN else cluster.told


def _broker(node: Node) -> dict[str, Any]:
    return {"node_id": node.node_id, "host": node.host, "port": node.port, "rack": None}


def _controller(members: Members) -> int:
    return members.nodes[0].node_id


async def _asked(service: Service, request: Request, wanted: Any) -> ServedTopic | Values:
    topic_id = getattr(wanted, "topic_id", None)
    if topic_id is None:
        return await _named(service, wanted.name or "")
    topic = await service.topic(None, topic_id)
    if topic is None:
        name = None if request.version >= 12 else ""  # noqa: PLR2004 - since then a topic may have no name
        return _unknown(name, ErrorCode.unknown_topic_id) | {"topic_id": topic_id}
    return _about_to_be_read(topic)


async def _named(service: Service, name: str) -> ServedTopic | Values:
    topic = await service.topics.named(name)
    return _without(service, name) if topic is None else _about_to_be_read(topic)


def _about_to_be_read(topic: ServedTopic) -> ServedTopic:
    topic.learn_begins()
    return topic


def _without(service: Service, name: str) -> dict[str, Any]:
    return _unknown(name, service.without(name))


def _is_away(found: ServedTopic | Values) -> bool:
    return not isinstance(found, ServedTopic) and found["error_code"] is ErrorCode.leader_not_available


async def _described(request: Request, members: Members, found: ServedTopic | Values) -> Values:
    return await _topic(request, members, found) if isinstance(found, ServedTopic) else found


def _unknown(name: str | None, error: ErrorCode) -> dict[str, Any]:
    return {"error_code": error, "name": name, "topic_id": None, "partitions": []}


async def _topic(request: Request, members: Members, topic: ServedTopic) -> dict[str, Any]:
    numbers = range(topic.partitions)
    partitions = [_partition(members, topic, number) async for number in request.in_turns(numbers)]
    return {
        "error_code": ErrorCode.none,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": False,
        "partitions": partitions,
    }


def _partition(members: Members, topic: ServedTopic, number: int) -> Values:
    leaders = tuple(node.node_id for node in members.leaders(topic.topic_id, number))
    return {
        "error_code": ErrorCode.none,
        "partition_index": number,
        "leader_id": leaders[0],
        "leader_epoch": _LATER_EPOCH if topic.leader_epoch(number) >= 0 else -1,
        "replica_nodes": leaders,
        "isr_nodes": leaders,
        "eligible_leader_replicas": (),
        "last_known_elr": (),
    }
