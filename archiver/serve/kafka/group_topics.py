"""The topics that groups assign."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from archiver.serve.groups import AnyGroup, ConsumerGroup, KnownTopic, MatchedTopics, Topics, match_names
from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.reading import ServedTopics

_LOOK_SECONDS: Final = 0.5
_ATTEMPTS: Final = 3
"""Topics may come while a pattern is looked at. A member whose pattern isn't known keeps what it has until its next
heartbeat."""
_PARSED_AT_ONCE: Final = 16 << 10
"""Bytes of subscriptions. More are parsed in a thread."""
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")


@dataclass(slots=True, eq=False)
class _Matching:
    task: asyncio.Task[None]
    requests: int = 0
    """The requests that wait for it."""


class GroupTopics:
    """The mapping is the same object until something changes."""

    def __init__(self) -> None:
        self._topics = MatchedTopics({})
        self._looked_at = float("-inf")
        self._being_matched: dict[str, _Matching] = {}

    async def known(self, served: ServedTopics, names: Collection[str]) -> Topics:
        now = asyncio.get_running_loop().time()
        unopened = [name for name in names if name not in self._topics]
        if not unopened and now - self._looked_at < _LOOK_SECONDS:
            return self._topics
        for name in unopened:
            await served.named(name)
        self._looked_at = now
        served.look_around()
        topics = {}
        for topic in await served.every():
            topics[topic.name] = KnownTopic(topic.topic_id, topic.partitions)
            if not topic.partitions:
                topic.next_look()  # it can't be fetched from, so no fetch looks whether it got records
        if topics != dict(self._topics):
            self._topics = MatchedTopics(topics)
        return self._topics

    async def matching(self, pattern: str, turns: ClientTurns) -> Topics:
        """Wait for a match, in a thread. Raises TimeoutError.

        Compiling is cancelled if all waiting requests are gone.
        """
        for _ in range(_ATTEMPTS):
            if not pattern or self._topics.matched(pattern) is not None:
                break
            matching = self._being_matched.get(pattern)
            if matching is None:
                task = asyncio.get_running_loop().create_task(self._match(self._topics, pattern, turns))
                matching = self._being_matched[pattern] = _Matching(task)
                task.add_done_callback(partial(self._end_matching, pattern, matching))
            matching.requests += 1
            try:
                await asyncio.shield(matching.task)
            finally:
                matching.requests -= 1
                if not matching.requests and not matching.task.done():
                    matching.task.cancel()
                    self._end_matching(pattern, matching, matching.task)
        return self._topics

    async def _match(self, topics: MatchedTopics, pattern: str, turns: ClientTurns) -> None:
        matched = await turns.in_thread(partial(match_names, pattern, tuple(topics)))
        topics.keep(pattern, matched, turns.name)

    def _end_matching(self, pattern: str, matching: _Matching, _: asyncio.Task[None]) -> None:
        if self._being_matched.get(pattern) is matching:
            del self._being_matched[pattern]


def names_by_id(served: ServedTopics) -> dict[UUID, str]:
    return {topic.topic_id: topic.name for topic in served.open}


async def subscribed(group: AnyGroup | None, served: ServedTopics, turns: ClientTurns) -> frozenset[str]:
    if group is None:
        return frozenset()
    if isinstance(group, ConsumerGroup):
        names = names_by_id(served)
        subscribed_names = {names.get(topic, "") for member in group.members.values() for topic in member.topics}
        return frozenset(subscribed_names.union(*(member.names for member in group.members.values())))
    every = [data for member in group.members.values() for _, data in member.protocols]
    if sum(map(len, every)) <= _PARSED_AT_ONCE:
        return _names(every)
    return await turns.in_thread(partial(_names, every))


def _names(every: Iterable[bytes]) -> frozenset[str]:
    return frozenset(name for data in every for name in subscription(data))


def subscription(data: bytes) -> tuple[str, ...]:
    """Empty if `data` is no consumer's subscription."""
    names = []
    try:
        (count,) = _INT32.unpack_from(data, _INT16.size)
        position = _INT16.size + _INT32.size
        for _ in range(count):
            (size,) = _INT16.unpack_from(data, position)
            position += _INT16.size
            if size < 0 or position + size > len(data):
                return ()
            names.append(data[position : position + size].decode())
            position += size
    except (struct.error, UnicodeDecodeError):
        return ()
    return tuple(names)
