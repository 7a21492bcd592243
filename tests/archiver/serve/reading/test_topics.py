"""Unknown names cost the catalog nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from uuid import UUID

import pytest

from archiver.archive.batches import OpenStreams
from archiver.errors import NoTable
from archiver.serve.reading import ServedTopic, ServedTopics, Workers
from catalog.errors import CatalogUnreachable
from tests.support.archive.archived_batches import KnownRows, archived
from tests.support.archive.lake import Lake
from tests.support.kafka.record_batches import Record, build

HOUR = 3600.0


class Tables:
    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.error: Exception | None = None
        self.there = {"kafka.orders"}
        self.listings = 0
        self.rounds: list[tuple[str, ...]] = []
        self.loads: list[str] = []

    def load(self, topic: str) -> object:
        raise AssertionError(topic)

    def topics(self, known: Iterable[str] = ()) -> tuple[str, ...]:
        self.rounds.append(tuple(known))
        self._check()
        return tuple(name.removeprefix("kafka.") for name in sorted(self.there))

    def names(self) -> frozenset[str]:
        self.listings += 1
        self._check()
        return frozenset(self.there)

    def table_of(self, topic: str) -> str | None:
        return f"kafka.{topic}"

    def _check(self) -> None:
        if self.error is not None:
            raise self.error


def played(folder: Path, scene: Callable[[Tables, ServedTopics], Awaitable[None]], *, interval: float = HOUR) -> None:
    async def play() -> None:
        tables = Tables(archived(folder / "lake", build([Record(value=b"x")] * 10), end=10))
        with Workers(1) as workers:

            async def open_topic(name: str) -> ServedTopic:
                tables.loads.append(name)
                if f"kafka.{name}" not in tables.there:
                    raise NoTable("the topic has no archive", topic=name)
                archive = await workers.lookup(tables.lake.archive, registry=lambda *_: KnownRows())
                return ServedTopic(archive, workers, streams=OpenStreams(1))

            topics = ServedTopics(tables, open_topic, workers, interval=interval)  # type: ignore[arg-type]
            await scene(tables, topics)
            await topics.close()

    asyncio.run(play())


def test_names_that_clients_make_up_are_looked_up_in_one_list(tmp_path: Path) -> None:
    async def scene(tables: Tables, topics: ServedTopics) -> None:
        opened = await asyncio.gather(*(topics.named(f"made-up-{number}") for number in range(5000)))
        assert opened == [None] * 5000
        assert (tables.listings, tables.loads) == (1, [])
        assert await topics.named("orders") is not None
        assert (tables.listings, tables.loads) == (1, ["orders"])

    played(tmp_path, scene)


def test_a_topic_that_appears_is_found_with_the_next_list(tmp_path: Path) -> None:
    async def scene(tables: Tables, topics: ServedTopics) -> None:
        tables.there.clear()
        assert await topics.named("orders") is None
        tables.there.add("kafka.orders")
        assert await topics.named("orders") is not None
        assert tables.listings == 2

    played(tmp_path, scene, interval=0.0)


def test_absent_catalog_gets_one_request_for_all_names(tmp_path: Path) -> None:
    async def scene(tables: Tables, topics: ServedTopics) -> None:
        tables.error = CatalogUnreachable("nobody answers")
        names = [f"any-{number}" for number in range(100)]
        assert await asyncio.gather(*map(topics.named, names)) == [None] * 100
        assert (tables.listings, tables.loads) == (1, [])
        assert all(map(topics.is_away, names))

    played(tmp_path, scene)


def test_name_without_table_is_unknown_after_catalog_returns(tmp_path: Path) -> None:
    async def scene(tables: Tables, topics: ServedTopics) -> None:
        tables.error = CatalogUnreachable("nobody answers")
        assert await topics.named("made-up") is None
        assert topics.is_away("made-up")
        tables.error = None
        assert await topics.named("made-up") is None
        assert not topics.is_away("made-up")

    played(tmp_path, scene, interval=0.0)


@pytest.mark.parametrize("error", [None, CatalogUnreachable("nobody answers")])
def test_dropped_topic_id_lists_the_catalog_once(tmp_path: Path, error: Exception | None) -> None:
    async def scene(tables: Tables, topics: ServedTopics) -> None:
        tables.error = error
        for _ in range(5):
            assert await topics.identified(UUID(int=7)) is None
        assert len(tables.rounds) == (1 if error is None else 5), "without an answer the topic may be there"

    played(tmp_path, scene, interval=0.0)


def test_topics_that_are_open_are_not_loaded_to_be_listed(tmp_path: Path) -> None:
    async def scene(tables: Tables, topics: ServedTopics) -> None:
        await topics.load()
        await topics.load()
        assert tables.rounds == [(), ("orders",)]
        assert tables.loads == ["orders"]

    played(tmp_path, scene)
