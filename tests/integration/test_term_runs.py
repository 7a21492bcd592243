"""Runs of the index in a real Postgres: who may register them, what rewrites pass on, and what erasures drop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from uuid import UUID

import numpy as np
import psycopg
import pytest

from catalog.model import TopicRow
from catalog.ranges.holes import AcceptedOffsets
from catalog.ranges.rewrite import NewFile, RecordSpan, Rewrite, RewriteGroup
from catalog.registry import Registry, accepted_rows
from catalog.term_runs import GoneOffsets, LeafTable, TermRun
from tests.support.catalog.memory import file, span
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

BUILD = "index-1"
MAPPINGS = {"key": "1", "header-68": "1"}


@pytest.fixture
def dsn(stack: Stack) -> str:
    return stack.database()


@pytest.fixture
def registry(dsn: str) -> Iterator[Registry]:
    with Registry(dsn) as registry:
        yield registry


@pytest.fixture
def orders(registry: Registry) -> TopicRow:
    """A topic with a build that is alive."""
    topic = registry.topics.register(cluster_id="c", topic="orders", topic_id=UUID(int=1), table="kafka.orders")
    registry.claims.note_run(topic, BUILD)
    return topic


def run_of(
    registry: Registry, orders: TopicRow, name: str, *, column: str = "key", mapping: str = "1", start: int = 0
) -> TermRun:
    return TermRun(
        id=name,
        column=column,
        name=column,
        kind="terms",
        mapping=mapping,
        path=f"file:///index/{name}.parquet",
        size_bytes=1,
        checksum="",
        entries=1,
        begun_ms=registry.index.now_ms(orders),
        spans=((0, start, start + 10),),
        leaves=LeafTable(np.zeros((1, 4), np.int64)),
        footer=b"",
    )


def covered(registry: Registry, topic: TopicRow, *paths: str) -> Mapping[tuple[str, str], frozenset[str]]:
    return registry.index.state(topic, MAPPINGS, paths).files


def test_only_builds_with_a_claim_register_runs(registry: Registry, orders: TopicRow) -> None:
    first, second, merged = (run_of(registry, orders, name) for name in "ABC")
    assert registry.index.add(orders, [first, second], ["a"], build=BUILD)
    assert registry.claims.renew_run(orders, BUILD)
    assert registry.index.begin_merge(orders, [first, second], build=BUILD)
    assert [claim.begun_ms for claim in registry.claims.runs(orders)] <= [first.begun_ms]
    registry.claims.forget_run(orders, BUILD)
    assert not registry.claims.renew_run(orders, BUILD)
    assert not registry.index.begin_merge(orders, [first, second], build=BUILD)
    assert not registry.index.add(orders, [merged], ["b"], build=BUILD)
    assert not registry.index.replace(orders, merged, ["A", "B"], build=BUILD)
    assert covered(registry, orders, "a", "b") == {("key", "a"): {"A", "B"}}
    registry.claims.note_run(orders, BUILD)
    assert registry.index.replace(orders, merged, ["A", "B"], build=BUILD, kept=["b"])
    assert covered(registry, orders, "a") == {}


def test_an_erasure_drops_only_runs_from_before(registry: Registry, orders: TopicRow, dsn: str) -> None:
    older = [run_of(registry, orders, "A"), run_of(registry, orders, "B", start=10)]
    for run in older:
        registry.index.add(orders, [run], [run.id], build=BUILD)
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO erased_offsets (topic_id, partition, start_offset, end_offset, commit_id)"
            " VALUES (%s, 0, 3, 4, 'C')",
            (orders.id,),
        )
    at_ms, (noted,) = registry.index.gone(orders)
    assert older[0].begun_ms <= noted.noted_ms < at_ms
    assert registry.index.erase(orders, []) == ("A",)
    (left,) = registry.index.load(orders)
    assert (left.id, left.begun_ms >= at_ms) == ("B", True)
    registry.index.add(orders, [run_of(registry, orders, "D")], ["A"], build=BUILD)
    assert registry.index.erase(orders, []) == (), "it was built after the erasure"
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "INSERT INTO accepted_offsets (topic_id, partition, first_offset, commit_id, spans,"
            " removed_rows, lost_rows)"
            " VALUES (%s, 0, 11, 'E', '[[11, 12], [14, 16]]', 3, 0)",
            (orders.id,),
        )
    assert [(it.start, it.end) for it in registry.index.gone(orders)[1]] == [(3, 4), (11, 12), (14, 16)]
    assert registry.index.erase(orders, []) == ("B",)
    retired = GoneOffsets(0, 0, 10, registry.index.now_ms(orders))
    assert registry.index.erase(orders, [retired]) == ("D",)


def rewrite(registry: Registry, topic: TopicRow, reason: str, *groups: RewriteGroup) -> None:
    done = Rewrite(commit_id=f"commit-{reason}", reason=reason, schema_version=1, groups=groups)
    registry.rewrites.begin(topic, done)
    registry.rewrites.finish(topic, done)


@pytest.mark.parametrize(
    ("reason", "mapping", "is_covered"), [("compact", "1", True), ("reprocess", "1", False), ("compact", "2", False)]
)
def test_rewritten_files_inherit_coverage(
    registry: Registry, orders: TopicRow, reason: str, mapping: str, is_covered: bool
) -> None:
    ranges = (span(0, 0, 10), span(0, 10, 20))
    registry.files.stage(orders, ranges, table_offsets={})
    registry.files.confirm(orders, [range_.id for range_ in ranges], commit_id="A")
    old = tuple(file.path for range_ in ranges for file in range_.files)
    runs = [
        run_of(registry, orders, "A"),
        run_of(registry, orders, "B", mapping=mapping),
        run_of(registry, orders, "H", column="header-68"),
    ]
    for run, path in zip(runs, [*old, old[0]], strict=True):
        registry.index.add(orders, [run], [path], build=BUILD)
    fresh = NewFile(
        file=file("new", rows=20),
        spans=tuple(RecordSpan(partition=0, start_offset=start, end_offset=start + 10, rows=10) for start in (0, 10)),
    )
    rewrite(registry, orders, reason, RewriteGroup(paths=old, files=(fresh,)))
    expected = {("key", fresh.file.path): {"A", "B"}} if is_covered else {}
    assert covered(registry, orders, fresh.file.path) == expected


def test_files_of_open_rewrites_and_new_files_stay_covered(registry: Registry, orders: TopicRow) -> None:
    ranges = (span(0, 0, 10),)
    registry.files.stage(orders, ranges, table_offsets={})
    registry.files.confirm(orders, [range_.id for range_ in ranges], commit_id="A")
    ((old,),) = (tuple(file.path for file in range_.files) for range_ in ranges)
    begun_ms = registry.index.now_ms(orders)
    registry.index.add(orders, [run_of(registry, orders, "A")], [old], build=BUILD)
    assert registry.index.forget_files(orders, [], before_ms=begun_ms) == (), "it was covered after the table was read"
    done = Rewrite(
        commit_id="D", reason="compact", schema_version=1, groups=(RewriteGroup.of_file(old, file("new", rows=10)),)
    )
    registry.rewrites.begin(orders, done)
    later = registry.index.now_ms(orders) + 1
    assert registry.index.forget_files(orders, ["new"], before_ms=later) == ()
    registry.rewrites.finish(orders, done)
    assert registry.index.forget_files(orders, [done.new_paths[0]], before_ms=later + 60_000) == ()
    assert registry.index.forget_files(orders, [], before_ms=later + 60_000) == ("A",)


def test_files_that_took_too_long_are_remembered(registry: Registry, orders: TopicRow) -> None:
    for path in ("a", "b"):
        registry.index.note_cut(orders, path)
    registry.index.note_cut(orders, "a")
    assert registry.index.cut(orders) == {"a", "b"}
    registry.index.add(orders, [run_of(registry, orders, "A")], ["a"], build=BUILD)
    assert registry.index.cut(orders) == {"b"}
    registry.index.forget_files(orders, ["a"], before_ms=0)
    assert registry.index.cut(orders) == frozenset()


def erase(registry: Registry, topic: TopicRow, name: str, *spans: tuple[int, int, int]) -> tuple[str, ...]:
    registry.rewrites.finish(topic, Rewrite(commit_id=name, reason="erase", schema_version=1, groups=(), erased=spans))
    return registry.index.erase(topic, [])


@pytest.mark.parametrize("again", [(0, 3, 7), (0, 3, 5), (0, 3, 9)])
def test_offsets_erased_again_are_noted_again(
    registry: Registry, orders: TopicRow, again: tuple[int, int, int]
) -> None:
    erase(registry, orders, "C", (0, 3, 7))
    registry.index.add(orders, [run_of(registry, orders, "A")], ["a file that was back"], build=BUILD)
    assert registry.index.erase(orders, []) == ()
    assert erase(registry, orders, "D", again) == ("A",)
    assert registry.erasures.offsets(orders) == {0: [(3, max(7, again[2]))]}


def test_gone_offsets_may_be_in_runs_of_a_faster_clock(registry: Registry, orders: TopicRow, dsn: str) -> None:
    """As after a failover: the server that took over is a minute behind."""
    run = replace(run_of(registry, orders, "A"), begun_ms=registry.index.now_ms(orders) + 60_000)
    registry.index.add(orders, [run], ["a"], build=BUILD)
    assert erase(registry, orders, "C", (0, 3, 4)) == ("A",)
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "UPDATE metadata SET value = jsonb_build_object('begun_ms', %s::bigint) WHERE key = 'rewriting'",
            (run.begun_ms + 1,),
        )
        accepted = AcceptedOffsets(partition=0, spans=((5, 6),), removed=1, lost=0)
        accepted_rows.keep(connection, orders, [accepted], commit_id="D")
    assert [it.noted_ms for it in registry.index.gone(orders)[1]] == [run.begun_ms, run.begun_ms + 1]
    assert registry.index.now_ms(orders) == run.begun_ms + 1
