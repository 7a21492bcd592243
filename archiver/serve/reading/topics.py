"""The archived topics of a configuration, opened when they are first seen."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias
from uuid import UUID

from archiver.archive.tables import TableSource
from archiver.errors import ArchiveReplaced, ConfigError, ReplayError
from archiver.serve.reading.served_topic import ServedTopic
from archiver.serve.reading.workers import Workers
from schema_mapping.errors import ContextError

Open: TypeAlias = Callable[[str], Awaitable[ServedTopic]]

_LOG = logging.getLogger(__name__)
_AT_ONCE: Final = 4
_MOST_UNKNOWN: Final = 1024
_LISTED_SECONDS: Final = 30.0


class ServedTopics:
    """All topics that have an archive. Use it from one event loop."""

    def __init__(self, tables: TableSource, open_topic: Open, workers: Workers, *, interval: float = 2.0) -> None:
        """`interval` is how long the answer holds that a topic has no archive, in seconds."""
        self._tables = tables
        self._open_topic = open_topic
        self._workers = workers
        self._interval = interval
        self._topics: dict[str, ServedTopic] = {}
        self._opening: dict[str, asyncio.Task[ServedTopic | None]] = {}
        self._unknown: OrderedDict[str, float] = OrderedDict()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._listed_at = float("-inf")
        self._listing: asyncio.Task[None] | None = None
        self._round: asyncio.Task[None] | None = None

    @property
    def open(self) -> tuple[ServedTopic, ...]:
        """The topics that are open, by name."""
        return tuple(self._topics[name] for name in sorted(self._topics))

    async def load(self) -> None:
        """List the topics in the catalog and open them. Raises the catalog's errors."""
        names = await self._workers.lookup(self._tables.topics)
        self._listed_at = asyncio.get_running_loop().time()
        await asyncio.gather(*(self.named(name) for name in names))

    async def every(self) -> tuple[ServedTopic, ...]:
        """All topics. The catalog is asked for others from time to time, and nobody waits for that."""
        is_due = asyncio.get_running_loop().time() - self._listed_at > _LISTED_SECONDS
        if is_due:
            self._list_soon()
        return self.open

    def look_around(self) -> None:
        """Look at tables that nobody looked at for a while, one after the other. Nobody waits for that.

        Clients fetch from the leader of a partition. A node that leads none of a topic hears of it in other requests.
        """
        if self._round is None or self._round.done():
            self._round = asyncio.get_running_loop().create_task(self._look_at_unseen())

    async def named(self, name: str) -> ServedTopic | None:
        """The topic of this name; None if it has no archive, or none that can be read."""
        known = self._topics.get(name)
        if known is not None and not isinstance(known.trouble, ArchiveReplaced):
            return known
        if asyncio.get_running_loop().time() < self._unknown.get(name, float("-inf")):
            return None
        task = self._opening.get(name)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._open_named(name))
            self._opening[name] = task
            task.add_done_callback(lambda _: self._opening.pop(name))
        return await asyncio.shield(task)

    def with_id(self, topic_id: UUID) -> ServedTopic | None:
        """The open topic with this id; None if there is none."""
        return next((each for each in self._topics.values() if each.topic_id == topic_id), None)

    async def identified(self, topic_id: UUID) -> ServedTopic | None:
        """The topic with this id. Another node may have told of it before this one has seen it: the catalog is asked.

        That is done at most once an interval.
        """
        found = self.with_id(topic_id)
        if found is None and asyncio.get_running_loop().time() - self._listed_at >= self._interval:
            await asyncio.shield(self._list_soon())
        return found or self.with_id(topic_id)

    async def close(self) -> None:
        """Close all topics."""
        tasks = [*self._opening.values(), *(each for each in (self._listing, self._round) if each is not None)]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for topic in self._topics.values():
            await topic.close()

    async def _open_named(self, name: str) -> ServedTopic | None:
        try:
            async with self._slots:
                topic = await self._open_topic(name)
        except ContextError as error:
            self._note_unknown(name)
            if not isinstance(error, ConfigError | ReplayError):  # clients may ask for any name
                _LOG.warning("topic %s can't be served", name, exc_info=error)
            return None
        replaced = self._topics.pop(name, None)
        self._topics[name] = topic
        if replaced is not None:
            await replaced.close()
        return topic

    def _list_soon(self) -> asyncio.Task[None]:
        if self._listing is None or self._listing.done():
            self._listing = asyncio.get_running_loop().create_task(self._list_again())
        return self._listing

    async def _look_at_unseen(self) -> None:
        for each in self.open:
            if each.is_unseen:
                await asyncio.wait({each.next_look()})

    async def _list_again(self) -> None:
        try:
            await self.load()
        except ContextError as error:
            self._listed_at = asyncio.get_running_loop().time()
            _LOG.warning("the catalog can't be asked for topics; those that are known are served", exc_info=error)

    def _note_unknown(self, name: str) -> None:
        self._unknown[name] = asyncio.get_running_loop().time() + self._interval
        self._unknown.move_to_end(name)
        if len(self._unknown) > _MOST_UNKNOWN:
            self._unknown.popitem(last=False)
