"""Chores on a real Postgres."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from archiver.chores.chore import Chore, ChoreOutcome, ChoreTurn
from archiver.chores.runner import ChoreEnded, ChoreRunner
from archiver.chores.tidying import TIDYING
from archiver.cli.app import app
from archiver.config import load_config
from archiver.ingest.job import ArchiveJob
from archiver.upkeep.compact.job import Compact, Wish
from catalog.model import TopicRow
from catalog.registry import Registry, files
from tests.support.archive.job_runs import archive_once, numbered
from tests.support.archive.regrouping import Workshop
from tests.support.catalog.memory import span
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration


@pytest.fixture
def dsn(stack: Stack) -> str:
    return stack.database()


@pytest.fixture
def registry(dsn: str) -> Iterator[Registry]:
    with Registry(dsn) as opened:
        yield opened


@pytest.fixture
def orders(registry: Registry) -> TopicRow:
    return registry.topics.register(cluster_id="c", topic="orders", topic_id=None, table="kafka.orders")


def stage(registry: Registry, topic: TopicRow, start: int, *, partition: int = 0) -> str:
    made = span(partition, start, start + 10)
    assert registry.files.stage(topic, [made], table_offsets={}).accepted == (made,)
    return made.id


def starts(registry: Registry, topic: TopicRow, cursor: int, *, most: int = 64) -> tuple[int, list[int]] | None:
    commits = registry.chores.commits_since(topic, cursor, most=most)
    return commits and (commits.through, [range_.start_offset for range_ in commits.ranges])


def test_commits_come_in_the_order_of_their_confirmation(registry: Registry, orders: TopicRow) -> None:
    ids = [stage(registry, orders, start) for start in (0, 10, 20)]
    assert starts(registry, orders, 0) is None, "nothing is committed"
    registry.files.confirm(orders, [ids[0]], commit_id="A")
    registry.files.confirm(orders, ids[1:], commit_id="B")
    assert starts(registry, orders, 0) == (2, [0, 10, 20])
    assert starts(registry, orders, 0, most=1) == (1, [0])
    assert starts(registry, orders, 1) == (2, [10, 20])
    assert starts(registry, orders, 2) is None
    registry.files.confirm(orders, ids, commit_id="C")  # they keep their first commit
    assert starts(registry, orders, 2) is None
    assert registry.chores.state(orders, "index").behind == 2


def test_a_reader_never_sees_a_number_before_a_lower_one(dsn: str, registry: Registry, orders: TopicRow) -> None:
    """The first archiver's transaction is still open when the second confirms."""
    first, second = stage(registry, orders, 0), stage(registry, orders, 0, partition=1)
    with psycopg.connect(dsn) as slow, ThreadPoolExecutor(1) as pool:
        files.confirm(slow, orders, [first], commit_id="A")
        confirming = pool.submit(registry.files.confirm, orders, [second], commit_id="B")
        with pytest.raises(TimeoutError):
            confirming.result(timeout=0.5)
        with Registry(dsn) as reader:
            assert reader.chores.state(orders, "index").behind == 0
        slow.commit()
        confirming.result(timeout=10)
    assert starts(registry, orders, 0, most=1) == (1, [0])
    assert starts(registry, orders, 1) == (2, [0])


def test_what_older_archivers_committed_is_numbered_in_order(dsn: str, registry: Registry, orders: TopicRow) -> None:
    for number, start in enumerate((0, 10, 20)):
        registry.files.confirm(orders, [stage(registry, orders, start)], commit_id=str(number))
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE files SET commit_number = NULL")
        connection.execute("DELETE FROM commit_numbers")
    pages, cursor = [], 0
    while (page := starts(registry, orders, cursor, most=1)) is not None:
        cursor = page[0]
        pages.append(page[1])
    assert pages == [[0], [10], [20]]
    registry.files.confirm(orders, [stage(registry, orders, 30)], commit_id="3")
    assert starts(registry, orders, cursor) == (cursor + 1, [30])


def test_cursors_only_grow_and_a_success_ends_failures(registry: Registry, orders: TopicRow) -> None:
    registry.files.confirm(orders, [stage(registry, orders, 0)], commit_id="A")
    assert registry.chores.of_topics([orders]) == {orders.id: ()}
    assert registry.chores.state(orders, "index").behind == 1
    for cursor in (1, 0):
        registry.chores.keep_cursor(orders, "index", cursor)
    registry.chores.note_failed(orders, "index", "first")
    registry.chores.note_failed(orders, "index", "with \x00 inside")
    (state,) = registry.chores.of_topics([orders])[orders.id]
    assert state == registry.chores.state(orders, "index")
    assert (state.cursor, state.behind, state.failures) == (1, 0, 2)
    assert state.error == "with \N{REPLACEMENT CHARACTER} inside"
    registry.chores.note_ended(orders, "index")
    state = registry.chores.state(orders, "index")
    assert (state.cursor, state.failures, state.error, state.failed_at) == (1, 0, None, None)
    assert state.ended_at is not None


def status(config: Path, topic: str, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["status", topic, "--config", str(config), *words])
    return done.exit_code, " ".join(done.stdout.split())


def test_a_chore_reads_commits_since_its_cursor(stack: Stack) -> None:
    topic = stack.topic(1)
    config = stack.config({topic: {"compact_min_files": 2}})
    for start in range(0, 60, 20):
        stack.produce(topic, *numbered(range(start, start + 20), 1))
        archive_once(config, topic)
    stop, seen = threading.Event(), list[list[tuple[int, int]]]()

    def index(turn: ChoreTurn) -> ChoreOutcome:
        for commits in turn.commits(most=2):
            seen.append([(range_.start_offset, range_.end_offset) for range_ in commits.ranges])
            if len(seen) == 2:
                raise ValueError("the index is broken")
            turn.keep(commits.through)
        return ChoreOutcome()

    def stop_it(event: ChoreEnded) -> None:
        if event.chore == "index":
            stop.set()

    def turn() -> None:
        stop.clear()
        chore = Chore(name="index", when="when idle", run=index)
        job = ArchiveJob(load_config(config), engine=InlineEngine(), chores=ChoreRunner((TIDYING, chore), stop_it))
        assert job.run_every(5.0, stop).succeeded, "archiving continues"

    turn()
    assert seen == [[(0, 20), (20, 40)], [(40, 60)]]
    code, text = status(config, topic, "--no-json")
    assert code == 0
    assert "index failed once, last at" in text
    assert "ValueError: the index is broken" in text
    code, text = status(config, topic, "--json")
    (kept,) = json.loads(text)["topics"][0]["chores"]
    assert (kept["chore"], kept["cursor"], kept["behind"], kept["failures"]) == ("index", 2, 1, 1)
    Compact(load_config(config), wish=Wish(), engine=InlineEngine).run()
    turn()
    assert seen[2:] == [[(0, 60)]], "the old ranges are gone, the new one is new to the chore"
    with Workshop.of(config) as shop:
        state = shop.registry.chores.state(shop.topic, "index")
    assert (state.behind, state.failures) == (0, 0)
