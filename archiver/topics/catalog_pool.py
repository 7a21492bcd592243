"""Catalog connections for many topics at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from queue import Empty, SimpleQueue
from typing import Self, TypeVar

from catalog.iceberg.table_catalog import TableCatalog

Topic = TypeVar("Topic")
Found = TypeVar("Found")

_AHEAD = 4
"""For each connection so many topics are asked about ahead of the one that is waited for."""


class CatalogPool:
    def __init__(self, connect: Callable[[], TableCatalog], *, most: int) -> None:
        self._connect = connect
        self._most = most
        self._closing = ExitStack()
        self._idle = SimpleQueue[TableCatalog]()
        self._pool = self._closing.enter_context(ThreadPoolExecutor(most, thread_name_prefix="catalog"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()
        while not self._idle.empty():
            self._idle.get().close()

    def each(
        self, topics: Sequence[Topic], ask: Callable[[Topic, TableCatalog], Found], stop: threading.Event
    ) -> Iterator[tuple[Topic, Future[Found]]]:
        """In order; no more calls once `stop` is set."""
        waiting: list[tuple[Topic, Future[Found]]] = []
        left = iter(topics)
        try:
            while not stop.is_set():
                while len(waiting) < self._most * _AHEAD and (topic := next(left, None)) is not None:
                    waiting.append((topic, self._pool.submit(self._ask, topic, ask)))
                if not waiting:
                    return
                topic, answer = waiting.pop(0)
                answer.exception()  # waits for it
                yield topic, answer
        finally:
            for _, answer in waiting:
                answer.cancel()

    def begin(self, topic: Topic, work: Callable[[Topic, TableCatalog], Found]) -> Future[Found]:
        return self._pool.submit(self._ask, topic, work)

    @contextmanager
    def one(self) -> Iterator[TableCatalog]:
        try:
            catalog = self._idle.get_nowait()
        except Empty:
            catalog = self._connect()
        try:
            yield catalog
        finally:
            self._idle.put(catalog)

    def _ask(self, topic: Topic, ask: Callable[[Topic, TableCatalog], Found]) -> Found:
        with self.one() as catalog:
            return ask(topic, catalog)
