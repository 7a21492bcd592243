"""The registry forgets old ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from catalog.model import DataFileInfo, FileState, PartitionOffset, TopicRow, TranslatedRange, new_id
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from catalog.registry import Registry
from catalog.registry.trimming import Trimmed
from tests.support.catalog.memory import span
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

KEPT = (
    "SELECT id, partition, start_offset, end_offset, leader_epoch, state, path, rows, size_bytes, digest,"
    " file->'rows', file->'path', file->'partition_value', file->'digest', commit_id FROM files WHERE path IS NOT NULL"
    " ORDER BY id"
)


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


def detailed(one: TranslatedRange) -> TranslatedRange:
    if one.file is None:
        return one
    bounds = {number: b"%d" % number for number in range(64)}
    return replace(one, files=(replace(one.file, lower_bounds=bounds, upper_bounds=bounds, digest="0" * 32),))


def commit(registry: Registry, topic: TopicRow, *ranges: TranslatedRange) -> list[TranslatedRange]:
    made = [detailed(range_) for range_ in ranges]
    assert registry.files.stage(topic, made, table_offsets={}).accepted == tuple(made)
    registry.files.confirm(topic, [entry.id for entry in made], commit_id=new_id())
    return made


def age(dsn: str, days: int) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE files SET committed_at = committed_at - make_interval(days => %s)", (days,))
        connection.execute("UPDATE metadata SET updated = updated - make_interval(days => %s)", (days,))


def query(dsn: str, text: str) -> list[Any]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(text.encode()).fetchall()


def test_old_files_lose_what_manifests_say_of_columns(dsn: str, registry: Registry, orders: TopicRow) -> None:
    commit(registry, orders, *(span(number, 0, 10) for number in range(3)))
    age(dsn, 31)
    (young,) = commit(registry, orders, span(0, 10, 20))
    before, counts, claims = query(dsn, KEPT), registry.files.counts(orders), [row[6] for row in query(dsn, KEPT)]
    assert registry.files.trim(orders) == Trimmed(slimmed=3, removed=0)
    assert registry.files.trim(orders) == Trimmed()
    assert query(dsn, KEPT) == before
    assert registry.files.counts(orders) == counts
    assert set(registry.claims.file_states(orders, dict.fromkeys(claims, "")).states.values()) == {FileState.COMMITTED}
    whole, slim = (
        row[0] for row in query(dsn, "SELECT max(length(file::text)) FROM files GROUP BY slim ORDER BY slim")
    )
    assert slim < whole / 3
    for range_id, text in query(dsn, "SELECT id, file FROM files"):
        info = DataFileInfo.from_json(text)
        assert (info.rows, info.digest, bool(info.lower_bounds)) == (10, "0" * 32, range_id == young.id)


def test_neighbours_without_files_become_one(dsn: str, registry: Registry, orders: TopicRow) -> None:
    chain = [
        span(0, 0, 5, with_file=False),
        span(0, 5, 6, with_file=False, epoch=4),
        span(0, 6, 10),
        span(0, 10, 11, with_file=False),
        replace(span(0, 11, 20, with_file=False), lost=True),
        *(span(0, start, start + 1, with_file=False) for start in range(20, 30)),
        *(span(1, start, start + 1, with_file=False) for start in range(20, 30)),
    ]
    commit(registry, orders, *chain)
    age(dsn, 31)
    commit(registry, orders, span(1, 30, 31, with_file=False))
    ends, lost, files = registry.files.accepted_ends(orders), registry.files.lost_offsets(orders), query(dsn, KEPT)
    assert registry.files.trim(orders).removed == 1 + 9 + 9
    assert registry.files.accepted_ends(orders) == ends
    assert registry.files.lost_offsets(orders) == lost == 9
    assert query(dsn, KEPT) == files
    rows = query(dsn, "SELECT partition, start_offset, end_offset, lost FROM files ORDER BY 1, 2")
    assert rows == [
        (0, 0, 6, False),
        (0, 6, 10, False),
        (0, 10, 11, False),
        (0, 11, 20, True),
        (0, 20, 30, False),
        (1, 20, 30, False),
        (1, 30, 31, False),
    ]
    assert query(dsn, "SELECT leader_epoch FROM files WHERE end_offset = 6") == [(4,)]
    commit(registry, orders, span(0, 30, 31), span(1, 31, 32))
    age(dsn, 31)
    registry.files.trim(orders)
    assert query(dsn, "SELECT start_offset, end_offset FROM files WHERE partition = 1 AND path IS NULL") == [(20, 31)]


def test_what_waits_or_was_refused_stays_whole(dsn: str, registry: Registry, orders: TopicRow) -> None:
    waiting, refused = detailed(span(0, 0, 10)), detailed(span(0, 50, 60))
    registry.files.stage(orders, [waiting, refused], table_offsets={})
    age(dsn, 400)
    assert registry.files.trim(orders) == Trimmed()
    assert registry.files.pending(orders) == (waiting,)
    assert query(dsn, "SELECT count(*) FROM files WHERE file->'lower_bounds' <> '{}'") == [(2,)]


def test_replaced_and_rejected_files_go_with_their_objects(dsn: str, registry: Registry, orders: TopicRow) -> None:
    (old,) = commit(registry, orders, span(0, 0, 10))
    refused = span(0, 50, 60)
    registry.files.stage(orders, [refused], table_offsets={})
    assert old.file is not None
    assert refused.file is not None
    made = replace(old.file, path="file:///nowhere/made.parquet")
    rewrite = Rewrite(
        commit_id=new_id(),
        reason="test",
        schema_version=1,
        groups=(RewriteGroup.of_file(old.file.path, made),),
    )
    registry.rewrites.begin(orders, rewrite)
    registry.rewrites.finish(orders, rewrite)
    gone = {old.file.path: old.id, refused.file.path: refused.id, made.path: ""}
    with registry.claims.nothing_staged(orders, gone) as still:
        still.forget_deleted(gone)
    assert query(dsn, "SELECT path, state FROM files") == [(made.path, "committed")]
    age(dsn, 31)
    registry.files.trim(orders)
    assert query(dsn, "SELECT name FROM metadata WHERE key = 'rewrite'") == []


def test_the_ends_of_partitions_are_found_by_the_index(dsn: str, registry: Registry, orders: TopicRow) -> None:
    second = registry.topics.register(cluster_id="c", topic="other", topic_id=None, table="kafka.other")
    commit(registry, orders, *(span(partition, 0, 10, epoch=partition) for partition in (0, 1, 7)))
    commit(registry, second, span(3, 0, 99))
    registry.files.stage(orders, [span(7, 10, 12, epoch=9)], table_offsets={})
    assert registry.files.accepted_ends(orders) == {
        0: PartitionOffset(next_offset=10, leader_epoch=0),
        1: PartitionOffset(next_offset=10, leader_epoch=1),
        7: PartitionOffset(next_offset=12, leader_epoch=9),
    }
    assert registry.files.staged_ends(orders) == {7: PartitionOffset(next_offset=12, leader_epoch=9)}
    assert registry.files.staged_ends(second) == {}
