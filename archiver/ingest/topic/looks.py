"""What a wave's plan needs to know of many topics, asked together: tables a few at once, brokers once for all topics.

A topic that brokers can't be asked about so asks by itself when it is planned: what is wrong with it stays its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from queue import Empty, SimpleQueue
from typing import Protocol, Self, TypeVar

from archiver.errors import SourceError
from archiver.ingest.topic.look import Ahead, LogBounds, Reached
from archiver.kafka.broker import BrokerClient
from catalog.iceberg.tables import TableCatalog
from schema_mapping.errors import ContextError

Topic = TypeVar("Topic")
Found = TypeVar("Found")

_AHEAD = 4
"""For each connection so many topics are asked about ahead of the one that is waited for."""


class Catalogs:
    """Connections to the catalog for questions about many topics: up to `most` at once, each made when first needed."""

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
        """The topics in their order, each with what `ask` gave or raised; once `stop` is set none is asked any more."""
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

    def _ask(self, topic: Topic, ask: Callable[[Topic, TableCatalog], Found]) -> Found:
        try:
            catalog = self._idle.get_nowait()
        except Empty:
            catalog = self._connect()
        try:
            return ask(topic, catalog)
        finally:
            self._idle.put(catalog)


class Plannable(Protocol):
    """What is asked for here of a topic's run; see `TopicRun`."""

    @property
    def name(self) -> str:
        """The topic's name."""

    @property
    def given_up(self) -> tuple[int, ...]:
        """The partitions that aren't looked at any more."""

    def reached(self, catalog: TableCatalog) -> Reached:
        """How far the topic is archived."""


Run = TypeVar("Run", bound=Plannable)


def look_ahead(
    runs: Sequence[Run], *, catalogs: Catalogs, brokers: BrokerClient, stop: threading.Event
) -> dict[Run, Ahead]:
    """What is known of the runs' topics for their plans: first where the archive stands, then of the logs.

    In this order: a log that is asked first may seem to end before what others archive of it meanwhile.
    """
    places: dict[Run, Reached | ContextError] = {}
    for run, answer in catalogs.each(runs, lambda run, catalog: run.reached(catalog), stop):
        try:
            places[run] = answer.result()
        except ContextError as error:
            places[run] = error
    bounds = _bounds({run: place for run, place in places.items() if isinstance(place, Reached)}, brokers)
    return {run: Ahead(place=place, bounds=bounds.get(run.name)) for run, place in places.items()}


def _bounds(places: Mapping[Run, Reached], brokers: BrokerClient) -> dict[str, LogBounds]:
    wanted: dict[str, list[int]] = {}
    with suppress(SourceError):  # the first topic that asks by itself says so
        brokers.refresh([run.name for run in places])
    for run in places:
        with suppress(SourceError):
            described = brokers.described(run.name).partitions
            wanted[run.name] = sorted(described.keys() - set(run.given_up))
    return LogBounds.ask_at_once(wanted, {run.name: place.known for run, place in places.items()}, brokers)
