"""Many topics in one job, on a default Postgres."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from archiver.config import load_config
from archiver.errors import TopicBusy
from archiver.ingest import job
from archiver.ingest.events import RangesCommitted, TopicsOpened
from archiver.ingest.job import ArchiveJob
from archiver.topics.leases import LEASE_WAIT_SECONDS
from catalog.registry import Registry
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack, unique
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration

TOPICS = 150
MOST_CONNECTIONS = 6
"""A session for all leases, and a small pool: one for each topic that is committed at once, and one for the job."""


@contextmanager
def connections(dsn: str) -> Iterator[list[int]]:
    most, over = [0], threading.Event()

    def watch() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not over.wait(0.01):
                row = connection.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND pid <> pg_backend_pid()"
                ).fetchone()
                most[0] = max(most[0], row[0] if row else 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()


def most_allowed(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        (text,) = connection.execute("SHOW max_connections").fetchone() or ("0",)
    return int(text)


@pytest.fixture
def registered(stack: Stack) -> tuple[Path, list[str]]:
    names = [unique("many") for _ in range(TOPICS)]
    config = stack.config({name: {} for name in names})
    settings = load_config(config)
    with Registry(settings.registry.dsn) as registry, job.BrokerClient(settings.kafka) as brokers:
        cluster_id = brokers.cluster_id()
        for name in names:
            registry.topics.register(cluster_id=cluster_id, topic=name, topic_id=None, table=settings.topic(name).table)
    return config, names


def test_leases_of_many_topics_take_one_connection(registered: tuple[Path, list[str]]) -> None:
    config, names = registered
    dsn = load_config(config).registry.dsn
    assert most_allowed(dsn) <= 100, "the stack's Postgres is not as it comes"
    with Registry(dsn) as registry, connections(dsn) as most, registry.leases() as leases:
        assert leases.take(registry.topics.every()) == ()
        eventually(lambda: most[0], "connections are counted")
    assert len(names) == TOPICS
    assert 0 < most[0] <= MOST_CONNECTIONS


def test_concurrent_commits_use_threads_and_complete_all_topics(stack: Stack) -> None:
    topics = [stack.topic() for _ in range(12)]
    config = stack.config({topic: {} for topic in topics})
    settings = load_config(config)
    for topic in topics:
        stack.produce(topic, {"value": b"one"}, {"value": b"two"})
    seen: dict[str, set[int]] = {"committed": set(), "told": set()}
    topic_names: list[str] = []

    def watch(event: Any) -> None:
        seen["told"].add(threading.get_ident())
        if isinstance(event, RangesCommitted):
            seen["committed"].add(threading.get_ident())
            topic_names.append(event.topic)

    with connections(settings.registry.dsn) as most:
        report = ArchiveJob(settings, topics, watch, engine=InlineEngine()).run_once()
    assert report.succeeded, report
    assert (report.records, sorted(topic_names)) == (24, sorted(topics))
    assert threading.get_ident() in seen["told"]
    assert 1 < len(seen["committed"]) <= settings.archive.catalog_connections
    assert threading.get_ident() not in seen["committed"]
    assert 0 < most[0] <= MOST_CONNECTIONS


def test_topics_that_others_hold_share_one_deadline(registered: tuple[Path, list[str]]) -> None:
    config, names = registered
    settings = load_config(config)
    with Registry(settings.registry.dsn) as rival, rival.leases() as leases:
        assert leases.take(rival.topics.every()) == ()
        started = time.monotonic()
        report = ArchiveJob(settings, names, engine=InlineEngine()).run_once()
        assert time.monotonic() - started < LEASE_WAIT_SECONDS + 10
    assert {type(topic.error) for topic in report.topics} == {TopicBusy}
    assert len(report.topics) == TOPICS


def test_a_run_whose_leases_are_lost_goes_on_and_says_so(stack: Stack, caplog: pytest.LogCaptureFixture) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, {"value": b"one"}, {"value": b"two"})
    settings = load_config(config)

    class Ending(InlineEngine):
        """Postgres ends every session before the first task: the leases' and the pool's."""

        def run_tasks(self, tasks: Any, run: Any) -> Any:
            with psycopg.connect(settings.registry.dsn, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            return super().run_tasks(tasks, run)

    report = ArchiveJob(settings, [topic], engine=Ending()).run_once()
    assert report.succeeded, report
    assert report.records == 2
    assert "leases of 1 topics broke" in caplog.text
    caplog.clear()
    stack.produce(topic, {"value": b"three"})
    again = ArchiveJob(settings, [topic], engine=InlineEngine()).run_once()
    assert (again.succeeded, again.records) == (True, 1)
    assert "leases of" not in caplog.text


def test_records_a_rival_archives_before_planning_are_single(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    settings = load_config(config)
    stack.produce(topic, {"value": b"one"})
    assert ArchiveJob(settings, [topic], engine=InlineEngine()).run_once().records == 1
    stack.produce(topic, {"value": b"two"}, {"value": b"three"})
    rivals: list[tuple[bool, int]] = []

    def overtake(event: Any) -> None:
        if isinstance(event, TopicsOpened) and not rivals:
            with psycopg.connect(settings.registry.dsn, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            rival = ArchiveJob(settings, [topic], engine=InlineEngine()).run_once()
            rivals.append((rival.succeeded, rival.records))

    report = ArchiveJob(settings, [topic], overtake, engine=InlineEngine()).run_once()
    assert rivals == [(True, 2)], "the rival was first, on the table that the run had opened before"
    assert report.succeeded, report
    rows = stack.catalog().load_table(settings.topic(topic).table).scan().to_arrow().to_pylist()
    assert sorted(row["kafka"]["offset"] for row in rows) == [0, 1, 2]
