"""Removes repeated names, as Kafka does, so that no small request gets a huge answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from archiver.serve.kafka.service import Request
from archiver.wire.api_keys import ApiKey


def _itself(name: str) -> Hashable:
    return name


def _topic(topic: Any) -> Hashable:
    topic_id: Hashable = getattr(topic, "topic_id", None)
    return topic_id or str(topic.name)


def _resource(resource: Any) -> Hashable:
    return resource.resource_type, resource.resource_name


_NAMES: Final[Mapping[int, tuple[str, Callable[[Any], Hashable]]]] = {
    ApiKey.METADATA: ("topics", _topic),
    ApiKey.FIND_COORDINATOR: ("coordinator_keys", _itself),
    ApiKey.DESCRIBE_GROUPS: ("groups", _itself),
    ApiKey.DESCRIBE_CONFIGS: ("resources", _resource),
    ApiKey.DELETE_GROUPS: ("groups_names", _itself),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ("group_ids", _itself),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ("topics", _topic),
}
"""The field of a request that has names, by API, and what distinguishes them."""


def without_repeats(request: Request) -> Request:
    """OffsetFetch topics of a repeated group are joined."""
    if request.api_key == ApiKey.FETCH:
        return _with_each_partition_once(request)
    if request.api_key == ApiKey.OFFSET_FETCH:
        return _with_each_offset_once(request)
    if request.api_key not in _NAMES:
        return request
    field, key = _NAMES[request.api_key]
    return _with(request, field, _first_of_each(getattr(request.body, field, None) or (), key))


def _with_each_partition_once(request: Request) -> Request:
    """Repeats would stay in memory while the Fetch waits. The last mention of a partition counts."""
    count = sum(len(topic.partitions) for topic in request.body.topics)
    last = {
        (getattr(topic, "topic_id", None) or getattr(topic, "topic", None), partition.partition): (topic, partition)
        for topic in request.body.topics
        for partition in topic.partitions
    }
    if len(last) == count:
        return request
    topics: dict[Hashable, tuple[Any, list[Any]]] = {}
    for (named, _), (topic, partition) in last.items():
        topics.setdefault(named, (topic, []))[1].append(partition)
    once = tuple(replace(topic, partitions=tuple(partitions)) for topic, partitions in topics.values())
    return replace(request, body=replace(request.body, topics=once))


def _with_each_offset_once(request: Request) -> Request:
    """The metadata of an offset may be long."""
    body = request.body
    if not hasattr(body, "groups"):
        return replace(request, body=_once(body))
    groups = tuple(_once(group) for group in _each_group_once(body.groups))
    return replace(request, body=replace(body, groups=groups))


def _once(asked: Any) -> Any:
    count = sum(1 + len(topic.partition_indexes) for topic in asked.topics or ())
    topics: dict[Hashable, tuple[Any, dict[int, None]]] = {}
    for topic in asked.topics or ():
        name = getattr(topic, "topic_id", None) or getattr(topic, "name", None)
        topics.setdefault(name, (topic, {}))[1].update(dict.fromkeys(topic.partition_indexes))
    if sum(1 + len(numbers) for _, numbers in topics.values()) == count:
        return asked
    once = tuple(replace(topic, partition_indexes=tuple(numbers)) for topic, numbers in topics.values())
    return replace(asked, topics=once)


def _with(request: Request, field: str, names: Sequence[Any]) -> Request:
    if len(names) == len(getattr(request.body, field, None) or ()):
        return request
    return replace(request, body=replace(request.body, **{field: tuple(names)}))


def _first_of_each(names: Sequence[Any], key: Callable[[Any], Hashable]) -> Sequence[Any]:
    first: dict[Hashable, Any] = {}
    for name in names:
        first.setdefault(key(name), name)
    return tuple(first.values())


def _each_group_once(groups: Sequence[Any]) -> Sequence[Any]:
    first: dict[str, Any] = {}
    topics: dict[str, list[Any] | None] = {}
    for group in groups:
        group_id = group.group_id
        if group_id not in first:
            first[group_id] = group
            topics[group_id] = None if group.topics is None else list(group.topics)
        elif group.topics is None:
            topics[group_id] = None
        elif (named := topics[group_id]) is not None:
            named += group.topics
    if len(first) == len(groups):
        return groups
    return tuple(_with_topics(group, topics[group_id]) for group_id, group in first.items())


def _with_topics(group: Any, topics: list[Any] | None) -> Any:
    return replace(group, topics=None if topics is None else tuple(topics))
