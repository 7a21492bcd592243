"""Prefetch for plans: catalog first, then logs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from archiver.errors import BrokerUnavailable, UnknownTopic
from archiver.ingest.topic.prefetch import Prefetched, prefetch
from archiver.kafka.broker import BrokerClient, PartitionDescription, TopicDescription
from archiver.topics.catalog_pool import CatalogPool
from archiver.topics.inspection import ArchivedOffsets
from archiver.topics.log_bounds import LogBounds
from catalog.errors import CatalogUnreachable, TableMissing
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import PartitionOffset


class FakeCatalog:
    made: int = 0
    closed: int = 0

    def __init__(self) -> None:
        type(self).made += 1
        self.busy = threading.Lock()

    def close(self) -> None:
        type(self).closed += 1


@pytest.fixture
def catalogs() -> Iterator[CatalogPool]:
    FakeCatalog.made = FakeCatalog.closed = 0
    with CatalogPool(lambda: cast("TableCatalog", FakeCatalog()), most=3) as made:
        yield made
    assert FakeCatalog.closed == FakeCatalog.made <= 3


def test_topics_keep_order_and_threads_share_no_connection(catalogs: CatalogPool) -> None:
    def ask(topic: int, catalog: TableCatalog) -> int:
        connection = cast("FakeCatalog", catalog)
        assert connection.busy.acquire(blocking=False)
        time.sleep(0.002 * (topic % 3))
        connection.busy.release()
        return topic * topic

    answers = [(topic, answer.result()) for topic, answer in catalogs.each(range(40), ask, threading.Event())]
    assert answers == [(topic, topic * topic) for topic in range(40)]
    assert 1 < FakeCatalog.made <= 3


def test_an_error_is_its_topics_alone(catalogs: CatalogPool) -> None:
    def ask(topic: int, catalog: TableCatalog) -> int:
        if topic == 2:
            raise TableMissing("gone")
        return topic

    answers = dict(catalogs.each(range(5), ask, threading.Event()))
    assert isinstance(answers.pop(2).exception(), TableMissing)
    assert {topic: answer.result() for topic, answer in answers.items()} == {0: 0, 1: 1, 3: 3, 4: 4}


def test_few_are_asked_ahead_and_none_after_a_stop(catalogs: CatalogPool) -> None:
    stop, asked = threading.Event(), list[int]()

    def ask(topic: int, catalog: TableCatalog) -> None:
        asked.append(topic)

    for topic, _ in catalogs.each(range(1_000), ask, stop):
        assert max(asked) <= topic + 12
        if topic == 20:
            stop.set()
    assert 20 < len(asked) <= 33


@dataclass(eq=False)
class FakeRun:
    name: str
    fails: Exception | None = None
    given_up: tuple[int, ...] = ()

    def archived_offsets(self, catalog: TableCatalog) -> ArchivedOffsets:
        if self.fails is not None:
            raise self.fails
        offsets = {0: PartitionOffset(next_offset=5)}
        return ArchivedOffsets(table=cast("ArchiveTable", None), table_offsets=offsets, known=offsets, missing=())


class FakeBrokers:
    def __init__(self, *, unknown: str = "", away: bool = False) -> None:
        self._unknown = unknown
        self._away = away
        self.asked: list[Any] = []

    def refresh(self, topics: list[str]) -> None:
        self.asked.append(tuple(topics))
        if self._away:
            raise BrokerUnavailable("away")

    def described(self, topic: str) -> TopicDescription:
        if topic == self._unknown or self._away:
            raise UnknownTopic("unknown", topic=topic)
        leader = PartitionDescription(leader=1, leader_epoch=2)
        return TopicDescription(topic_id=None, partitions={0: leader, 1: leader})

    def list_offsets_at_once(self, asked: dict[str, list[int]], at: str) -> dict[str, dict[int, int]]:
        self.asked.append((at, {name: tuple(partitions) for name, partitions in asked.items()}))
        return {name: dict.fromkeys(partitions, 0 if at == "earliest" else 9) for name, partitions in asked.items()}

    def end_of_epoch_at_once(self, asked: dict[str, dict[int, int]]) -> dict[str, Any]:
        assert asked == {}, "no epoch is known"
        return {}


def looked(catalogs: CatalogPool, runs: list[FakeRun], brokers: FakeBrokers) -> dict[str, Prefetched]:
    client = cast("BrokerClient", brokers)
    prefetched = prefetch(runs, catalogs=catalogs, brokers=client, stop=threading.Event())
    assert list(prefetched) == runs
    return {run.name: ahead for run, ahead in prefetched.items()}


def test_logs_follow_tables_and_only_for_needed_partitions(catalogs: CatalogPool) -> None:
    brokers = FakeBrokers()
    away = CatalogUnreachable("away")
    runs = [FakeRun("a"), FakeRun("b", given_up=(1,)), FakeRun("c", fails=away)]
    prefetched = looked(catalogs, runs, brokers)
    assert prefetched["c"] == Prefetched(archived=away)
    assert prefetched["a"].bounds == LogBounds(starts={0: 0, 1: 0}, ends={0: 9, 1: 9}, epoch_ends={})
    assert prefetched["b"].bounds == LogBounds(starts={0: 0}, ends={0: 9}, epoch_ends={})
    assert brokers.asked[:2] == [("a", "b"), ("earliest", {"a": (0, 1), "b": (0,)})]


def test_topic_unknown_to_brokers_is_left_to_its_plan(catalogs: CatalogPool) -> None:
    prefetched = looked(catalogs, [FakeRun("a"), FakeRun("b")], FakeBrokers(unknown="a"))
    assert prefetched["a"].bounds is None
    assert prefetched["b"].bounds is not None


def test_brokers_that_are_away_are_every_topics_own_error(catalogs: CatalogPool) -> None:
    prefetched = looked(catalogs, [FakeRun("a"), FakeRun("b")], FakeBrokers(away=True))
    assert [ahead.bounds for ahead in prefetched.values()] == [None, None]
    assert all(isinstance(ahead.archived, ArchivedOffsets) for ahead in prefetched.values())
