"""Permissions for requests about topics: a guard filters a handler's answer.

As in Kafka, a hidden topic gets the same error whether it exists or not, or is left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from kio.schema.describe_topic_partitions.v0.request import TopicRequest
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName

from archiver.access import Operation
from archiver.serve.kafka.messages import Values
from archiver.serve.kafka.service import Request, Service

Answer: TypeAlias = Values | list[bytes | memoryview]
Handler: TypeAlias = Callable[[Service, Request], Awaitable[Answer]]
"""Answers with the values of a message, or with a packed body."""
Guard: TypeAlias = Callable[[Handler, Service, Request], Awaitable[Answer]]
"""Answers by a handler, as far as the principal may have that."""

_TOPIC: Final = 2
_WITH_NO_TOPICS: Final = 1
"""From this version on, Metadata can name no topic."""
_DENIED: Final = ErrorCode.topic_authorization_failed


async def anybody(handler: Handler, service: Service, request: Request) -> Answer:
    """No permission needed: the answer shows no topic and no group."""
    return await handler(service, request)


async def nobody(handler: Handler, service: Service, request: Request) -> Answer:
    """A write: the handler refuses it for all clients."""
    return await handler(service, request)


async def fetching(handler: Handler, service: Service, request: Request) -> Answer:
    """Fetch needs READ of each topic. The handler checks it, because it packs its answer."""
    return await handler(service, request)


async def metadata(handler: Handler, service: Service, request: Request) -> Answer:
    """Metadata needs DESCRIBE of each topic."""
    named = request.body.topics
    allowed, refused = await split(service, request, named or (), Operation.DESCRIBE)
    asked = with_body(request, topics=named and allowed)
    if named and not allowed:  # in version 0 no topics would mean all
        asked = replace(asked, version=max(request.version, _WITH_NO_TOPICS))
    answer = values(await handler(service, asked))
    visible = [topic async for topic in request.in_turns(answer["topics"]) if _is_told(request, topic)]
    denied = await request.listed(_undescribed(request, topic) for topic in refused)
    return {**answer, "topics": [*visible, *denied]}


async def topic_partitions(handler: Handler, service: Service, request: Request) -> Answer:
    """DescribeTopicPartitions needs DESCRIBE of each topic."""
    asked = request.body.topics
    named = asked or [TopicRequest(name=TopicName(name)) for name in await service.topics.names()]
    allowed, refused = await split(service, request, named, Operation.DESCRIBE)
    denied = await request.listed(_undescribed(request, topic) for topic in refused) if asked else []
    if not allowed:  # none at all would mean all of them
        return {"topics": denied, "next_cursor": None}
    answer = values(await handler(service, with_body(request, topics=allowed)))
    return {**answer, "topics": [*answer["topics"], *denied]}


async def list_offsets(handler: Handler, service: Service, request: Request) -> Answer:
    """ListOffsets needs DESCRIBE of each topic."""
    return await by_topics(
        handler, service, request, Operation.DESCRIBE, lambda topic: _listed(request, topic, "partition_index")
    )


async def epochs(handler: Handler, service: Service, request: Request) -> Answer:
    """OffsetForLeaderEpoch needs DESCRIBE of each topic."""
    return await by_topics(
        handler, service, request, Operation.DESCRIBE, lambda topic: _listed(request, topic, "partition")
    )


async def configs(handler: Handler, service: Service, request: Request) -> Answer:
    """DescribeConfigs needs DESCRIBE of each topic. The node's settings are public."""
    allowed: list[Any] = []
    refused: list[Any] = []
    async for resource in request.in_turns(request.body.resources):
        is_allowed = resource.resource_type != _TOPIC or _may_describe(request, resource)
        (allowed if is_allowed else refused).append(resource)
    answer = values(await handler(service, with_body(request, resources=tuple(allowed))))
    denied = await request.listed(
        {
            "error_code": _DENIED,
            "error_message": None,
            "resource_type": resource.resource_type,
            "resource_name": resource.resource_name,
            "configs": [],
        }
        for resource in refused
    )
    return {**answer, "results": [*answer["results"], *denied]}


async def by_topics(
    handler: Handler,
    service: Service,
    request: Request,
    operation: Operation,
    refusal: Callable[[Any], Awaitable[Values]],
) -> Mapping[str, Any]:
    allowed, refused = await split(service, request, request.body.topics, operation)
    answer = values(await handler(service, with_body(request, topics=allowed)))
    denied = [await refusal(topic) async for topic in request.in_turns(refused)]
    return {**answer, "topics": [*answer["topics"], *denied]}


async def denied_topic(request: Request, topic: Any, partitions: Iterable[int], **more: Any) -> Values:
    denied = await request.listed(
        {"partition_index": partition, "error_code": _DENIED, **more} for partition in partitions
    )
    return {"name": getattr(topic, "name", None), "topic_id": getattr(topic, "topic_id", None), "partitions": denied}


async def split(
    service: Service, request: Request, topics: Iterable[Any], operation: Operation
) -> tuple[tuple[Any, ...], list[Any]]:
    allowed: list[Any] = []
    refused: list[Any] = []
    async for topic in request.in_turns(topics):
        name = await _name(service, topic)
        is_allowed = name is None or request.access.topic(name, operation)
        (allowed if is_allowed else refused).append(topic)
    return tuple(allowed), refused


def with_body(request: Request, **changes: Any) -> Request:
    return replace(request, body=replace(request.body, **changes))


def values(found: Answer) -> dict[str, Any]:
    assert isinstance(found, Mapping)
    return dict(found)


async def _name(service: Service, topic: Any) -> str | None:
    topic_id = getattr(topic, "topic_id", None)
    if topic_id is not None:
        topic = await service.topic(None, topic_id)  # as the handler will: it may be known here by then
        return topic.name if topic else None
    named = getattr(topic, "name", None) or getattr(topic, "topic", None)
    return str(named) if named else None


def _is_told(request: Request, topic: Values) -> bool:
    return not topic["name"] or request.access.topic(topic["name"], Operation.DESCRIBE)


def _may_describe(request: Request, resource: Any) -> bool:
    return request.access.topic(resource.resource_name, Operation.DESCRIBE)


def _undescribed(request: Request, topic: Any) -> Values:
    topic_id = getattr(topic, "topic_id", None)
    may_lack_name = getattr(request.body, "topics", None) is not None and request.version >= 12  # noqa: PLR2004
    name = topic.name if topic_id is None else None if may_lack_name else ""
    return {"error_code": _DENIED, "name": name, "topic_id": topic_id, "partitions": []}


async def _listed(request: Request, topic: Any, number: str) -> Values:
    partitions = await request.listed(
        {number: getattr(partition, number), "error_code": _DENIED} for partition in topic.partitions
    )
    named = "name" if hasattr(topic, "name") else "topic"
    return {named: getattr(topic, named), "partitions": partitions}
