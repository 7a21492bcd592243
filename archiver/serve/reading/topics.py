"""The archived topics of a configuration, opened on first use."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from archiver.archive.tables import TableSource
from archiver.errors import ArchiveReplaced, ConfigError, NoTable
from archiver.serve.reading.served_topic import ServedTopic
from archiver.serve.reading.table_listing import TableListing
from archiver.serve.reading.workers import Workers
from catalog.errors import NotOurTable
from schema_mapping.errors import ContextError

Open: TypeAlias = Callable[[str], Awaitable[ServedTopic]]

_LOG = logging.getLogger(__name__)
_AT_ONCE: Final = 4
_MOST_UNOPENED: Final = 1024
_LISTED_SECONDS: Final = 30.0
_MOST_IDS: Final = 1024
_WITHOUT_ARCHIVE: Final = (ConfigError, NoTable, NotOurTable)
"""Errors of opening a topic without an archive. ConfigError: no table can have this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unopened:
    error: ContextError
    until: float

    @property
    def trouble(self) -> ContextError | None:
        return None if isinstance(self.error, _WITHOUT_ARCHIVE) else self.error


class ServedTopics:
    """Use it from one event loop."""

    def __init__(self, tables: TableSource, open_topic: Open, workers: Workers, *, interval: float = 2.0) -> None:
        """A failed open isn't repeated for `interval` seconds."""
        self._tables = tables
        self._open_topic = open_topic
        self._workers = workers
        self._interval = interval
        self._topics: dict[str, ServedTopic] = {}
        self._opening: dict[str, asyncio.Task[ServedTopic | None]] = {}
        self._unopened: OrderedDict[str, _Unopened] = OrderedDict()
        self._unknown_ids: OrderedDict[UUID, None] = OrderedDict()
        self._tables_there = TableListing(tables, workers, interval=interval)
        self._names: frozenset[str] = frozenset()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._listed_at = float("-inf")
        self._listing: asyncio.Task[bool] | None = None
        self._round: asyncio.Task[None] | None = None

    @property
    def open(self) -> tuple[ServedTopic, ...]:
        return tuple(self._topics[name] for name in sorted(self._topics))

    @property
    def troubles(self) -> Mapping[str, ContextError]:
        """Errors of listed topics that can't be opened. Thread-safe."""
        troubles = ((name, last.trouble) for name, last in tuple(self._unopened.items()) if name in self._names)
        return {name: trouble for name, trouble in troubles if trouble is not None}

    @property
    def closed(self) -> tuple[str, ...]:
        """`troubles` without an earlier state to serve."""
        return tuple(sorted(set(self.troubles).difference(self._topics)))

    def trouble(self, name: str) -> ContextError | None:
        """None if the topic is open, has no archive, or wasn't requested."""
        last = self._unopened.get(name)
        return None if last is None else last.trouble

    def is_away(self, name: str) -> bool:
        trouble = self.trouble(name)
        return trouble is not None and trouble.retryable

    async def load(self) -> None:
        """Raises the catalog's errors."""
        self._names = frozenset(await self._workers.lookup(self._tables.topics, tuple(self._topics)))
        self._listed_at = asyncio.get_running_loop().time()
        await asyncio.gather(*(self.named(name) for name in self._names))

    async def every(self) -> tuple[ServedTopic, ...]:
        """The catalog is listed periodically, in the background."""
        is_due = asyncio.get_running_loop().time() - self._listed_at > _LISTED_SECONDS
        if is_due:
            self._list_soon()
        self._try_again()
        return self.open

    async def names(self) -> tuple[str, ...]:
        """Also of topics that can't be opened now."""
        return tuple(sorted([*(topic.name for topic in await self.every()), *self.closed]))

    def look_around(self) -> None:
        """In the background, for nodes without fetches."""
        if self._round is None or self._round.done():
            self._round = asyncio.get_running_loop().create_task(self._look_at_unseen())
        self._try_again()

    async def named(self, name: str) -> ServedTopic | None:
        """None without an archive, or with a `trouble`."""
        topic = self._topics.get(name)
        if topic is not None and not isinstance(topic.trouble, ArchiveReplaced):
            return topic
        if topic is None and not await self._may_be_there(name):
            return None
        task = self._open_soon(name)
        return None if task is None else await asyncio.shield(task)

    def with_id(self, topic_id: UUID) -> ServedTopic | None:
        return next((topic for topic in self._topics.values() if topic.topic_id == topic_id), None)

    async def identified(self, topic_id: UUID) -> ServedTopic | None:
        """An unknown id may be new, so the catalog is listed.

        Once per id, and at most once an interval: clients keep requesting dropped topics.
        """
        topic = self.with_id(topic_id)
        if topic is not None or topic_id in self._unknown_ids:
            return topic
        if asyncio.get_running_loop().time() - self._listed_at < self._interval:
            return None
        if await asyncio.shield(self._list_soon()):
            topic = self.with_id(topic_id)
            if topic is None and not self.troubles:  # else it may be the id of a topic that can't be opened now
                self._unknown_ids[topic_id] = None
                if len(self._unknown_ids) > _MOST_IDS:
                    self._unknown_ids.popitem(last=False)
        return topic

    async def close(self) -> None:
        await self._tables_there.close()
        tasks = [*self._opening.values(), *(task for task in (self._listing, self._round) if task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for topic in self._topics.values():
            await topic.close()

    def _try_again(self) -> None:
        for name in self.troubles:
            self._open_soon(name)

    async def _may_be_there(self, name: str) -> bool:
        last = self._unopened.get(name)
        if name in self._names or (last is not None and asyncio.get_running_loop().time() < last.until):
            return True
        try:
            is_there = await self._tables_there.has_table(name)
        except ContextError as error:
            self._note_unopened(name, error)
            return False
        if not is_there:
            self._unopened.pop(name, None)
        return is_there

    def _open_soon(self, name: str) -> asyncio.Task[ServedTopic | None] | None:
        """None if the last attempt failed within the interval."""
        loop = asyncio.get_running_loop()
        last = self._unopened.get(name)
        if last is not None and loop.time() < last.until:
            return None
        task = self._opening.get(name)
        if task is None:
            task = self._opening[name] = loop.create_task(self._open_named(name))
            task.add_done_callback(lambda _: self._opening.pop(name))
        return task

    async def _open_named(self, name: str) -> ServedTopic | None:
        try:
            async with self._slots:
                topic = await self._open_topic(name)
                await topic.begins_learned()
        except ContextError as error:
            self._note_unopened(name, error)
            return None
        self._unopened.pop(name, None)
        replaced = self._topics.pop(name, None)
        self._topics[name] = topic
        if replaced is not None:
            await replaced.close()
        return topic

    def _list_soon(self) -> asyncio.Task[bool]:
        """True if the catalog answered."""
        if self._listing is None or self._listing.done():
            self._listing = asyncio.get_running_loop().create_task(self._list_again())
        return self._listing

    async def _look_at_unseen(self) -> None:
        for topic in self.open:
            if topic.is_unseen:
                await asyncio.wait({topic.next_look()})

    async def _list_again(self) -> bool:
        try:
            await self.load()
        except ContextError as error:
            self._listed_at = asyncio.get_running_loop().time()
            _LOG.warning("the catalog can't be asked for topics; those that are known are served", exc_info=error)
            return False
        return True

    def _note_unopened(self, name: str, error: ContextError) -> None:
        before = self._unopened.get(name)
        is_told = before is not None and type(before.error) is type(error)
        if not is_told and not isinstance(error, ConfigError | NoTable):  # clients may send any name
            _LOG.warning("topic %s can't be served", name, exc_info=error)
        until = asyncio.get_running_loop().time() + self._interval
        error.__cause__ = error.__context__ = None  # they hold what was read when it failed
        self._unopened[name] = _Unopened(error=error.with_traceback(None), until=until)
        self._unopened.move_to_end(name)
        if len(self._unopened) > _MOST_UNOPENED:
            self._unopened.popitem(last=False)
