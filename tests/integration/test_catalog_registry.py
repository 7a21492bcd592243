"""The registry on a real Postgres, with rivals."""

from __future__ import annotations

import importlib.resources
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from catalog.errors import (
    RegistryDenied,
    RegistryError,
    RegistryOutdated,
    RegistryUnreachable,
    TableTaken,
    TopicRecreated,
)
from catalog.iceberg.settle import Landed, Refused, Settled
from catalog.model import FileState, PartitionOffset, StateCount, TopicRow, TranslatedRange
from catalog.registry import Registry, RegistryReader, topics
from catalog.registry.postgres import Postgres
from catalog.value_terms import Lookup, ValueTerms
from tests.support.catalog.memory import span
from tests.support.engine.forked import FORKED
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

MIGRATIONS = tuple(
    sorted(
        file.name.removesuffix(".sql")
        for file in importlib.resources.files("catalog.registry.migrations").iterdir()
        if file.name.endswith(".sql")
    )
)
NOWHERE: dict[int, PartitionOffset] = {}


@pytest.fixture
def dsn(stack: Stack) -> str:
    return stack.database()


@pytest.fixture
def registry(dsn: str) -> Iterator[Registry]:
    with Registry(dsn) as registry:
        yield registry


@pytest.fixture
def orders(registry: Registry) -> TopicRow:
    return registry.topics.register(cluster_id="c", topic="orders", topic_id=UUID(int=1), table="kafka.orders")


def at(**offsets: int) -> dict[int, PartitionOffset]:
    return {int(name[1:]): PartitionOffset(next_offset=offset) for name, offset in offsets.items()}


def made(dsn: str, topic: TopicRow) -> None:
    with psycopg.connect(dsn) as connection:
        topics.check_table(connection, topic, UUID(int=topic.id))


class TestOpening:
    def test_rivals_migrate_once(self, dsn: str):
        with ThreadPoolExecutor(4) as pool:
            databases = list(pool.map(lambda _: Postgres(dsn), range(4)))
            applied = list(pool.map(Postgres.migrate, databases))
        for database in databases:
            database.close()
        *none, every = sorted(applied)
        assert none == [(), (), ()]
        assert every == MIGRATIONS

    def test_a_database_of_a_newer_archiver_is_refused(self, dsn: str):
        Registry(dsn).close()
        with psycopg.connect(dsn) as connection:
            connection.execute("INSERT INTO migrations (number, name) VALUES (9999, '9999_later')")
        with pytest.raises(RegistryOutdated, match="9999"):
            Registry(dsn)

    def test_a_wrong_password(self, dsn: str):
        parts = urlsplit(dsn)
        wrong = urlunsplit(parts._replace(netloc=f"{parts.username}:hush@{parts.hostname}:{parts.port}"))
        with pytest.raises(RegistryDenied, match="refused the user or password") as caught:
            Registry(wrong)
        assert "hush" not in str(caught.value)
        assert not caught.value.retryable

    def test_a_database_that_is_not_there(self, dsn: str):
        with pytest.raises(RegistryDenied, match='database "nowhere" does not exist: create it'):
            Registry(urlunsplit(urlsplit(dsn)._replace(path="/nowhere")))

    def test_a_connection_that_the_server_ends(self, registry: Registry, dsn: str):
        database = Postgres(dsn)

        def be_cut_off() -> None:
            with database.transaction() as connection, psycopg.connect(dsn, autocommit=True) as admin:
                admin.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
                connection.execute("SELECT 1")

        with pytest.raises(RegistryUnreachable) as caught:
            be_cut_off()
        assert caught.value.retryable
        with database.transaction() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)

    def test_connection_closed_by_the_server_is_replaced(self, registry: Registry, dsn: str):
        database = Postgres(dsn, connections=1)
        with psycopg.connect(dsn, autocommit=True) as admin:
            for _ in range(5):
                with database.statements() as connection:
                    ended = connection.info.backend_pid
                    admin.execute("SELECT pg_terminate_backend(%s, 10000)", (ended,))
                with database.statements() as connection:
                    assert connection.info.backend_pid != ended
        database.close()

    def test_a_connection_that_was_just_used_is_not_asked_again(self, dsn: str, monkeypatch: pytest.MonkeyPatch):
        asked = []
        monkeypatch.setattr(ConnectionPool, "check_connection", asked.append)
        database = Postgres(dsn, connections=1)
        for _ in range(5):
            with database.statements() as connection:
                connection.execute("SELECT 1")
        assert len(asked) == 1
        monkeypatch.setattr("catalog.registry.postgres.TRUSTED_SECONDS", 0.0)
        with database.statements():
            assert len(asked) == 2
        database.close()
        database.close()


class TestTopics:
    def test_a_topic_is_registered_once(self, registry: Registry, orders: TopicRow):
        again = registry.topics.register(cluster_id="c", topic="orders", topic_id=UUID(int=1), table="kafka.orders")
        assert again == orders
        assert registry.topics.every() == (orders,)
        assert registry.topics.find(cluster_id="c", topic="orders") == orders
        assert registry.topics.find(cluster_id="c", topic="payments") is None

    def test_a_topic_id_is_filled_in_when_it_becomes_known(self, registry: Registry):
        first = registry.topics.register(cluster_id="c", topic="old", topic_id=None, table="kafka.old")
        second = registry.topics.register(cluster_id="c", topic="old", topic_id=UUID(int=3), table="kafka.old")
        assert second == replace(first, topic_id=UUID(int=3))
        assert registry.topics.register(cluster_id="c", topic="old", topic_id=None, table="kafka.old") == second

    def test_a_topic_made_again_is_not_the_same(self, registry: Registry, orders: TopicRow):
        with pytest.raises(TopicRecreated, match="deleted and created again"):
            registry.topics.register(cluster_id="c", topic="orders", topic_id=UUID(int=2), table="kafka.orders")

    def test_a_table_that_was_made_is_taken(self, registry: Registry, orders: TopicRow, dsn: str):
        made(dsn, orders)
        with pytest.raises(TableTaken, match=r"the archive of another topic: set `table`.*taken_by='orders'"):
            registry.topics.register(cluster_id="c", topic="Orders", topic_id=UUID(int=2), table="kafka.orders")
        assert registry.topics.owners() == {"kafka.orders": ("c", "orders")}
        assert registry.topics.every() == (orders,)

    def test_a_topic_keeps_the_table_that_was_made(self, registry: Registry, orders: TopicRow, dsn: str):
        made(dsn, orders)
        with pytest.raises(TableTaken, match=r"archived_in='kafka\.orders'"):
            registry.topics.register(cluster_id="c", topic="orders", topic_id=UUID(int=1), table="kafka.elsewhere")

    def test_a_name_whose_table_was_never_made_is_free(self, registry: Registry, orders: TopicRow):
        moved = registry.topics.register(cluster_id="c", topic="orders", topic_id=UUID(int=1), table="kafka.elsewhere")
        assert moved == replace(orders, table="kafka.elsewhere")
        second = registry.topics.register(cluster_id="c", topic="Orders", topic_id=UUID(int=2), table="kafka.orders")
        assert registry.topics.every() == (second, moved)

    def test_of_two_topics_the_first_table_made_takes_the_name(self, registry: Registry, orders: TopicRow, dsn: str):
        second = registry.topics.register(cluster_id="c", topic="Orders", topic_id=UUID(int=2), table="kafka.orders")
        made(dsn, orders)
        for table in (None, UUID(int=9)):
            with psycopg.connect(dsn) as connection, pytest.raises(TableTaken, match="taken_by='orders'"):
                topics.check_table(connection, second, table)

    def test_a_topic_of_another_registry_is_named(self, registry: Registry, orders: TopicRow):
        with pytest.raises(RegistryError, match="does not know the topic any more"):
            registry.files.stage(replace(orders, id=99), [span(0, 0, 1)], table_offsets=NOWHERE)


class TestFileValues:
    def test_values_rule_out_files_and_go_with_their_rows(self, registry: Registry, orders: TopicRow, dsn: str):
        ranges = [span(0, 0, 10), span(0, 10, 20), span(0, 20, 30)]
        staged = registry.files.stage(orders, ranges, table_offsets=NOWHERE).accepted
        paths = [file.path for range_ in staged for file in range_.files]
        values = ValueTerms.of_sets({7: frozenset({b"a\x00", b"b"}), 8: frozenset(range(400)), 9: frozenset()})
        registry.values.note(orders, {paths[0]: values, paths[1]: ValueTerms(columns=(7,)), "elsewhere": values})
        registry.values.note(orders, {paths[0]: ValueTerms()})  # the first stays
        lookups = [Lookup(7, b"a\x00"), Lookup(7, "c"), Lookup(8, 399), Lookup(8, 400), Lookup(9, 1), Lookup(5, 1)]
        assert registry.values.absent(orders, [*paths, "elsewhere"], lookups) == {
            paths[0]: [False, True, False, True, True, False],
            paths[1]: [True, True, False, False, False, False],
        }
        with RegistryReader(dsn) as reader:
            assert reader.values.absent(orders, paths[1:2], lookups[:1]) == {paths[1]: [True]}
            assert reader.values.absent(orders, paths, lookups[2:3]).keys() == {paths[0]}, "only it lists the column"
            assert reader.values.absent(orders, paths, []) == {}
            many = [Lookup(8, number) for number in range(380, 420)]
            assert reader.values.absent(orders, paths, many) == {
                paths[0]: [number >= 400 for number in range(380, 420)]
            }
        assert registry.values.missing(orders, paths) == [], "none is committed"
        registry.files.confirm(orders, [range_.id for range_ in staged], commit_id="c")
        assert registry.values.missing(orders, [*paths, "elsewhere"]) == [paths[2]]
        with psycopg.connect(dsn) as connection:
            (size,) = connection.execute("SELECT max(pg_column_size(v.*)) FROM file_values AS v").fetchone() or (0,)
            assert size <= 4_096
            connection.execute("DELETE FROM files WHERE path = %s", (paths[0],))
        assert registry.values.absent(orders, paths[:1], lookups) == {}


class TestFence:
    def test_ranges_that_continue_are_accepted_in_any_order(self, registry: Registry, orders: TopicRow):
        first, empty, third = span(0, 5, 10), span(0, 10, 12, with_file=False), span(0, 12, 20)
        staged = registry.files.stage(orders, [third, first, empty], table_offsets=NOWHERE)
        assert staged.accepted == (first, empty, third)
        assert staged.rejected == ()
        assert registry.files.pending(orders) == (first, empty, third)
        assert registry.files.staged_ends(orders) == {0: PartitionOffset(next_offset=20, leader_epoch=3)}

    def test_gaps_and_overlaps_are_rejected(self, registry: Registry, orders: TopicRow):
        registry.files.stage(orders, [span(0, 0, 10)], table_offsets=NOWHERE)
        gap, overlap, next_one = span(0, 11, 12), span(0, 9, 12), span(0, 10, 12)
        staged = registry.files.stage(orders, [gap, overlap, next_one], table_offsets=NOWHERE)
        assert staged.accepted == (next_one,)
        assert staged.rejected == (overlap, gap)
        assert registry.files.counts(orders)[FileState.REJECTED].ranges == 2

    def test_the_table_says_where_a_partition_starts(self, registry: Registry, orders: TopicRow):
        early, right = span(0, 0, 10), span(0, 7, 10)
        staged = registry.files.stage(orders, [early, right], table_offsets=at(p0=7))
        assert (staged.accepted, staged.rejected) == ((right,), (early,))

    def test_what_was_committed_since_the_table_was_loaded_counts(self, registry: Registry, orders: TopicRow):
        first = span(0, 0, 10)
        registry.files.stage(orders, [first], table_offsets=at(p0=0))
        registry.files.confirm(orders, [first.id], commit_id="A")
        rival = span(0, 0, 10)
        assert registry.files.stage(orders, [rival], table_offsets=at(p0=0)).rejected == (rival,)

    def test_what_follows_others_ranges_of_another_epoch_is_rejected(self, registry: Registry, orders: TopicRow):
        registry.files.stage(orders, [span(0, 0, 10, epoch=5)], table_offsets=NOWHERE)
        rival, after = span(0, 0, 10, epoch=6), span(0, 10, 20, epoch=6)
        assert registry.files.stage(orders, [rival, after], table_offsets=NOWHERE).rejected == (rival, after)
        again = span(0, 10, 20, epoch=6)
        assert registry.files.stage(orders, [again], table_offsets=NOWHERE).accepted == (again,)

    def test_what_was_never_staged_can_be_known_as_rejected(self, registry: Registry, orders: TopicRow):
        late, staged = span(0, 10, 20), span(0, 0, 10)
        registry.files.stage(orders, [staged], table_offsets=NOWHERE)
        for _ in range(2):
            registry.files.keep_rejected(orders, [late, staged], reason="it follows a gap")
        assert registry.files.pending(orders) == (staged,)
        assert registry.files.counts(orders)[FileState.REJECTED].ranges == 1
        assert registry.files.stage(orders, [late], table_offsets=NOWHERE).rejected == (late,)

    def test_staging_again_gives_the_same_answer(self, registry: Registry, orders: TopicRow):
        good, bad = span(0, 0, 10), span(0, 3, 9)
        once = registry.files.stage(orders, [good, bad], table_offsets=NOWHERE)
        assert registry.files.stage(orders, [good, bad], table_offsets=NOWHERE) == once
        assert registry.files.pending(orders) == (good,)

    def test_a_confirmed_range_is_done(self, registry: Registry, orders: TopicRow):
        first, second = span(0, 0, 10), span(0, 10, 25)
        registry.files.stage(orders, [first, second], table_offsets=NOWHERE)
        registry.files.confirm(orders, [first.id], commit_id="A")
        registry.files.confirm(orders, [first.id], commit_id="B")
        assert registry.files.pending(orders) == (second,)
        assert registry.files.counts(orders) == {
            FileState.UPLOADED: StateCount(ranges=1, rows=15, size_bytes=1000, files=1),
            FileState.COMMITTED: StateCount(ranges=1, rows=10, size_bytes=1000, files=1),
            FileState.REJECTED: StateCount(ranges=0, rows=0, size_bytes=0),
            FileState.REPLACED: StateCount(ranges=0, rows=0, size_bytes=0),
        }

    def test_a_rejected_range_makes_room(self, registry: Registry, orders: TopicRow):
        lost = span(0, 0, 10)
        registry.files.stage(orders, [lost], table_offsets=NOWHERE)
        registry.files.reject(orders, [lost.id], reason="its file is gone")
        assert registry.files.staged_ends(orders) == {}
        assert registry.files.stage(orders, [span(0, 0, 10)], table_offsets=NOWHERE).rejected == ()

    def test_what_was_staged_after_missing_files_waits_with_them(self, registry: Registry, orders: TopicRow):
        first, rivals, late = span(0, 0, 10), span(0, 10, 20), span(0, 20, 30)
        registry.files.stage(orders, [first], table_offsets=NOWHERE)
        registry.files.stage(orders, [rivals], table_offsets=NOWHERE)
        registry.missing.reject(orders, [first.id], reason="its file is gone")
        assert registry.files.pending(orders) == ()
        assert registry.files.stage(orders, [late], table_offsets=NOWHERE).rejected == (late,)
        assert registry.missing.take_up(orders, {first.id, rivals.id}, table_offsets=NOWHERE) == (first, rivals)

    def test_a_partition_begins_with_its_missing_files(self, registry: Registry, orders: TopicRow):
        first, again = span(0, 5, 10), span(0, 5, 12)
        registry.files.stage(orders, [first], table_offsets=NOWHERE)
        registry.missing.reject(orders, [first.id], reason="its file is gone")
        assert registry.files.stage(orders, [again], table_offsets=NOWHERE).rejected == ()

    def test_fates_are_recorded_together(self, registry: Registry, orders: TopicRow):
        landed, expired, refused, waiting = span(0, 0, 10), span(1, 0, 10), span(2, 0, 10), span(3, 0, 10)
        registry.files.stage(orders, [landed, expired, refused, waiting], table_offsets=NOWHERE)
        fates = Settled(
            landed=(Landed(range=landed, commit_id="A"), Landed(range=expired, commit_id=None)),
            refused=(Refused(range=refused, reason="elsewhere"),),
            waiting=(waiting,),
        )
        registry.files.record(orders, fates)
        assert registry.files.pending(orders) == (waiting,)
        assert registry.files.counts(orders)[FileState.COMMITTED].ranges == 2

    def test_of_rivals_in_threads_one_stages(self, registry: Registry, orders: TopicRow):
        together = threading.Barrier(4)

        def run(_: int) -> int:
            ranges = [span(partition, 0, 10) for partition in range(50)]
            together.wait()
            return len(registry.files.stage(orders, ranges, table_offsets=NOWHERE).accepted)

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(run, range(4))) == [0, 0, 0, 50]

    def test_of_rivals_in_processes_one_stages(self, dsn: str, registry: Registry, orders: TopicRow):
        with ProcessPoolExecutor(2, mp_context=FORKED) as pool:
            accepted = list(pool.map(stage_in_a_process, [dsn] * 4, [orders] * 4))
        assert sorted(map(len, accepted)) == [0, 0, 0, 3]
        (won,) = filter(None, accepted)
        assert registry.files.pending(orders) == won

    def test_ten_thousand_partitions_in_one_go(self, registry: Registry, orders: TopicRow):
        ranges = [span(partition, 0, 10) for partition in range(10_000)]
        assert len(registry.files.stage(orders, ranges, table_offsets=NOWHERE).accepted) == 10_000
        assert len(registry.files.staged_ends(orders)) == 10_000


def stage_in_a_process(dsn: str, topic: TopicRow) -> tuple[TranslatedRange, ...]:
    with Registry(dsn) as registry:
        ranges = [span(0, 0, 10), span(0, 10, 20), span(1, 0, 5)]
        return registry.files.stage(topic, ranges, table_offsets=NOWHERE).accepted


class TestLease:
    def test_one_holds_it(self, dsn: str, registry: Registry, orders: TopicRow):
        second = registry.topics.register(cluster_id="c", topic="other", topic_id=None, table="kafka.other")
        with Registry(dsn) as rival, registry.lease(orders) as mine:
            assert mine
            with rival.lease(orders) as theirs, rival.lease(second) as free:
                assert (theirs, free) == (False, True)
        deadline = time.monotonic() + 20
        while True:  # Postgres gives a lock back a moment after the connection was closed
            with registry.lease(orders) as again:
                if again:
                    break
            assert time.monotonic() < deadline

    def test_a_run_holds_many_on_one_connection(self, dsn: str, registry: Registry, orders: TopicRow):
        rows = [
            orders,
            *(
                registry.topics.register(cluster_id="c", topic=f"t{number}", topic_id=None, table=f"kafka.t{number}")
                for number in range(149)
            ),
        ]
        with (
            Registry(dsn) as rival,
            rival.lease(rows[7]),
            registry.leases() as leases,
            psycopg.connect(dsn) as watcher,
        ):
            assert leases.take(rows) == (rows[7],)
            assert leases.take(rows[:3]) == ()
            row = watcher.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchone()
            assert row is not None
            assert row[0] <= 4, "a lease for each of two, and their pools"
            with rival.leases() as theirs:
                assert len(theirs.take(rows)) == len(rows), "one is the rival's own, in another session"
        with registry.leases() as again:
            assert again.take(rows) == ()

    def test_a_dead_holder_lets_go(self, dsn: str, registry: Registry, orders: TopicRow):
        with registry.lease(orders), psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks JOIN pg_database ON pg_database.oid = database"
                " WHERE locktype = 'advisory' AND datname = current_database()"
            )
            with registry.lease(orders) as taken_over:
                assert taken_over
