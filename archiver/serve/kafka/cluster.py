"""What there is: Metadata, DescribeCluster and DescribeTopicPartitions."""

from __future__ import annotations

from typing import Any, Final

from kio.schema.errors import ErrorCode

from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Identity, Request, Service
from archiver.serve.reading import ServedTopic

_BROKERS: Final = 1
_MOST_PARTITIONS: Final = 2000


async def metadata(service: Service, request: Request) -> Values:
    """Metadata: the node, and topics with their partitions, which the node leads."""
    node = service.identity
    wanted = request.body.topics
    if wanted is None or (not wanted and request.version == 0):
        topics: list[Values] = [_topic(node, each) for each in await service.topics.every()]
    else:
        topics = [await _asked(service, request, each) for each in wanted]
    return {
        "brokers": [_broker(node)],
        "cluster_id": node.cluster_id,
        "controller_id": node.node_id,
        "topics": topics,
        "error_code": ErrorCode.none,
    }


async def describe_cluster(service: Service, request: Request) -> Values:
    """DescribeCluster: the node. There are no controllers to ask for."""
    node = service.identity
    kind = getattr(request.body, "endpoint_type", _BROKERS)
    error = ErrorCode.none if kind == _BROKERS else ErrorCode.mismatched_endpoint_type
    return {
        "error_code": error,
        "error_message": None if kind == _BROKERS else "an archive has no controllers: ask for brokers",
        "endpoint_type": kind,
        "cluster_id": node.cluster_id,
        "controller_id": node.node_id,
        "brokers": [_broker(node) | {"broker_id": node.node_id, "is_fenced": False}] if kind == _BROKERS else [],
    }


async def describe_topic_partitions(service: Service, request: Request) -> Values:
    """DescribeTopicPartitions: as Metadata, in pages of at most so many partitions."""
    names = sorted({each.name for each in request.body.topics}) or [each.name for each in await service.topics.every()]
    cursor = request.body.cursor
    left = max(1, min(request.body.response_partition_limit, _MOST_PARTITIONS))
    topics: list[Values] = []
    following = None
    for name in names:
        if cursor is not None and name < cursor.topic_name:
            continue
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        if left == 0:
            following = {"topic_name": name, "partition_index": first}
            break
        described = await _named(service, name)
        partitions = described["partitions"][max(0, first) :]
        topics.append({**described, "partitions": partitions[:left]})
        if len(partitions) > left:
            following = {"topic_name": name, "partition_index": first + left}
            break
        left -= len(partitions)
    return {"topics": topics, "next_cursor": following}


def _broker(node: Identity) -> dict[str, Any]:
    return {"node_id": node.node_id, "host": node.host, "port": node.port, "rack": None}


async def _asked(service: Service, request: Request, wanted: Any) -> Values:
    topic_id = getattr(wanted, "topic_id", None)
    if topic_id is None:
        return await _named(service, wanted.name or "")
    topic = service.topics.with_id(topic_id)
    if topic is None:
        name = None if request.version >= 12 else ""  # noqa: PLR2004 - since then a topic may have no name
        return _unknown(name, ErrorCode.unknown_topic_id) | {"topic_id": topic_id}
    return _topic(service.identity, topic)


async def _named(service: Service, name: str) -> dict[str, Any]:
    topic = await service.topics.named(name)
    return _unknown(name, ErrorCode.unknown_topic_or_partition) if topic is None else _topic(service.identity, topic)


def _unknown(name: str | None, error: ErrorCode) -> dict[str, Any]:
    return {"error_code": error, "name": name, "topic_id": None, "partitions": []}


def _topic(node: Identity, topic: ServedTopic) -> dict[str, Any]:
    alone = (node.node_id,)
    partitions = [
        {
            "error_code": ErrorCode.none,
            "partition_index": number,
            "leader_id": node.node_id,
            "leader_epoch": topic.leader_epoch(number),
            "replica_nodes": alone,
            "isr_nodes": alone,
            "eligible_leader_replicas": (),
            "last_known_elr": (),
        }
        for number in range(topic.partitions)
    ]
    return {
        "error_code": ErrorCode.none,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": False,
        "partitions": partitions,
    }
