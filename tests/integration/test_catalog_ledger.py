"""Columns of topics in Postgres, with rivals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest

from catalog.errors import RegistryBehind, RegistryError
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.registry.ledger import DeclaredColumns, unchanged_columns
from catalog.registry.ledger_rows import read_together
from catalog.registry.postgres import Connection, Postgres
from schema_mapping.protobuf.descriptors import SourceSchema
from tests.support.catalog.catalog_files import message
from tests.support.catalog.memory import MemoryCatalog
from tests.support.engine.forked import FORKED
from tests.support.schemas.proto_text import compile_text
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

NEWER = message(id=1, note=2)


class WithARival:
    def __init__(self, connection: Connection, act: Callable[[], object]) -> None:
        self._connection, self._act = connection, act

    def execute(self, statement: str, *values: Any) -> Any:
        if "FROM field_ids" in statement:
            self._act()
        return self._connection.execute(statement, *values)


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


class TestLedger:
    def test_the_ledger_comes_back_as_it_was(self, registry: Registry, orders: TopicRow):
        first = registry.ledger.assign(orders, DeclaredColumns(key=None, value=message(id=1, note=2)), table=None)
        assert registry.ledger.load(orders) == first.state
        second = registry.ledger.assign(orders, DeclaredColumns(key=None, value=message(number=1, extra=3)), table=None)
        assert registry.ledger.load(orders) == second.state
        assert (first.version, second.version) == (1, 2)
        assert (
            second.iceberg_schema.find_field("val.number").field_id
            == first.iceberg_schema.find_field("val.id").field_id
        )
        assert registry.ledger.row_mapping(orders, 1).to_json() == first.row.to_json()
        with pytest.raises(RegistryError, match="schema_version=9"):
            registry.ledger.row_mapping(orders, 9)

    def test_what_each_version_changed_is_remembered(self, registry: Registry, orders: TopicRow):
        first = registry.ledger.assign(orders, DeclaredColumns(key=None, value=message(id=1, note=2)), table=None)
        second = registry.ledger.assign(orders, DeclaredColumns(key=None, value=message(number=1, extra=3)), table=None)
        registry.ledger.assign(orders, DeclaredColumns(key=None, value=message(id=1, note=2)), table=None)
        history = registry.ledger.history(orders)
        assert [(entry.version, entry.changes) for entry in history] == [(1, first.changes), (2, second.changes)]
        assert [entry.fingerprint for entry in history] == [first.fingerprint, second.fingerprint]
        assert history[0].created <= history[1].created
        assert {change.kind for change in second.changes} == {"added", "renamed", "removed"}

    def test_comments_come_back(self, registry: Registry, orders: TopicRow):
        value = compile_text("message M { int32 a = 1; // the first\n}")
        assert registry.ledger.assign(
            orders, DeclaredColumns(key=None, value=value), table=None
        ).state == registry.ledger.load(orders)
        assert [entry.doc for entry in registry.ledger.load(orders).entries if entry.name == "a"] == ["the first"]

    def test_a_schema_seen_before_changes_nothing(self, registry: Registry, orders: TopicRow):
        old, new = message(id=1), message(id=1, note=2)
        registry.ledger.assign(orders, DeclaredColumns(key=None, value=old), table=None)
        latest = registry.ledger.assign(orders, DeclaredColumns(key=None, value=new), table=None)
        again = registry.ledger.assign(orders, DeclaredColumns(key=None, value=old), table=None)
        assert again.version == 1
        assert again.iceberg_schema == latest.iceberg_schema
        assert replace(registry.ledger.load(orders), returning=None) == latest.state
        registry.ledger.assign(orders, DeclaredColumns(key=None, value=new), table=None)
        assert registry.ledger.load(orders) == latest.state

    def test_lasting_older_schema_becomes_a_version_again(self, dsn: str, registry: Registry, orders: TopicRow):
        old, new = message(id=1, note=2), message(number=1)
        first = registry.ledger.assign(orders, DeclaredColumns(key=None, value=old), table=None)
        registry.ledger.assign(orders, DeclaredColumns(key=None, value=new), table=None)
        assert [
            registry.ledger.assign(orders, DeclaredColumns(key=None, value=old), table=None).version for _ in range(4)
        ] == [1] * 4
        returning = registry.ledger.load(orders).returning
        assert (returning.version, returning.asks) == (1, 4)
        with psycopg.connect(dsn) as connection:
            connection.execute("UPDATE topics SET returning_since = returning_since - interval '1 hour'")
        third = registry.ledger.assign(orders, DeclaredColumns(key=None, value=old), table=None)
        assert (third.version, third.fingerprint) == (3, first.fingerprint)
        assert registry.ledger.load(orders) == third.state
        assert registry.ledger.assign(orders, DeclaredColumns(key=None, value=old), table=None) == replace(
            third, changes=(), is_new=False
        )
        assert [entry.changes for entry in registry.ledger.history(orders)][2] == third.changes
        assert {change.kind for change in third.changes} == {"renamed", "restored"}

    def test_ledgers_read_together_are_as_each_is_alone(self, registry: Registry, orders: TopicRow):
        rest = [
            registry.topics.register(cluster_id="c", topic=name, topic_id=UUID(int=at), table=f"kafka.{name}")
            for at, name in enumerate(("bills", "new"), 70)
        ]
        registry.ledger.assign(orders, DeclaredColumns(key=None, value=message(id=1, note=2)), table=None)
        registry.ledger.assign(orders, DeclaredColumns(key=None, value=message(id=1)), table=None)
        registry.ledger.assign(orders, DeclaredColumns(key=None, value=message(id=1, note=2)), table=None)
        registry.ledger.assign(rest[0], DeclaredColumns(key=message(id=3), value=None), table=None)
        ledgers = registry.ledger.read_together([orders, *rest, replace(orders, id=9_999)])
        assert ledgers.keys() == {orders.id, rest[0].id, rest[1].id}
        for topic in (orders, *rest):
            assert ledgers[topic.id].state == registry.ledger.load(topic)
        assert ledgers[orders.id].state.returning is not None
        assert ledgers[orders.id].table_uuid is None

    def test_ledgers_read_together_are_of_one_moment(self, dsn: str, registry: Registry, orders: TopicRow):
        before = registry.ledger.assign(orders, DeclaredColumns(key=None, value=message(id=1)), table=None).state
        with closing(Postgres(dsn, connections=1)) as database, database.transaction() as connection:
            rival = WithARival(
                connection, lambda: registry.ledger.assign(orders, DeclaredColumns(key=None, value=NEWER), table=None)
            )
            assert read_together(cast("Connection", rival), [orders])[orders.id].state == before
        assert registry.ledger.load(orders).newest == 2

    def test_unchanged_columns_are_assigned_without_the_lock(
        self, dsn: str, registry: Registry, orders: TopicRow, tmp_path: Path
    ):
        table, value = MemoryCatalog(tmp_path).load(), message(id=1, note=2)
        for base in (None, table):  # the second takes the table's ids into account
            first = registry.ledger.assign(orders, DeclaredColumns(key=None, value=value), table=base)
        with psycopg.connect(dsn) as rival:
            rival.execute("SELECT FROM topics WHERE id = %s FOR UPDATE", (orders.id,))
            seen = registry.ledger.read_together([orders])[orders.id]
            unchanged = unchanged_columns(seen, DeclaredColumns(key=None, value=value), table=table)
        assert unchanged == replace(first, changes=(), is_new=False)

    def test_columns_that_may_change_are_left_to_the_lock(self, registry: Registry, orders: TopicRow, tmp_path: Path):
        table, value = MemoryCatalog(tmp_path / "a").load(), message(id=1, note=2)
        for base in (None, table):
            registry.ledger.assign(orders, DeclaredColumns(key=None, value=value), table=base)
        seen = registry.ledger.read_together([orders])[orders.id]
        assert unchanged_columns(seen, DeclaredColumns(key=None, value=value), table=table) is not None
        later = replace(seen, state=replace(seen.state, last_id=table.last_column_id - 1))
        elsewhere = MemoryCatalog(tmp_path / "b").load()
        newer = replace(seen, state=replace(seen.state, versions=()))
        assert unchanged_columns(seen, DeclaredColumns(key=None, value=message(id=1)), table=table) is None
        assert unchanged_columns(seen, DeclaredColumns(key=None, value=None), table=table) is None  # refused there
        assert unchanged_columns(seen, DeclaredColumns(key=None, value=value), table=elsewhere) is None
        assert unchanged_columns(later, DeclaredColumns(key=None, value=value), table=table) is None
        assert unchanged_columns(newer, DeclaredColumns(key=None, value=value), table=table) is None
        assert (
            unchanged_columns(replace(seen, table_uuid=None), DeclaredColumns(key=None, value=value), table=table)
            is None
        )

    def test_a_request_that_is_counted_is_left_to_the_lock(self, registry: Registry, orders: TopicRow, tmp_path: Path):
        table, old, new = MemoryCatalog(tmp_path).load(), message(id=1), message(id=1, note=2)
        for value, base in ((old, None), (new, table), (old, table)):
            registry.ledger.assign(orders, DeclaredColumns(key=None, value=value), table=base)
        seen = registry.ledger.read_together([orders])[orders.id]
        assert [
            unchanged_columns(seen, DeclaredColumns(key=None, value=value), table=table) for value in (old, new)
        ] == [None, None]

    def test_rivals_agree_on_every_id(self, dsn: str, registry: Registry, orders: TopicRow):
        schemas = [message(id=1, **{f"f{number}": 10 + number}) for number in range(4)]
        with ProcessPoolExecutor(2, mp_context=FORKED) as pool:
            seen = list(pool.map(assign_in_a_process, [dsn] * 4, [orders] * 4, schemas))
        agreed = {entry.path: entry.field_id for entry in registry.ledger.load(orders).entries if entry.root == "val"}
        assert len(set(agreed.values())) == len(agreed)
        for ids in seen:
            assert ids.items() <= agreed.items()

    def test_new_ids_start_above_the_tables_own(self, registry: Registry, orders: TopicRow, tmp_path: Path):
        table = MemoryCatalog(tmp_path).load()
        metadata = table.iceberg.metadata.model_copy(update={"last_column_id": 500})
        table.iceberg.metadata = metadata
        table.properties["archiver.ledger-version"] = "0"
        assignment = registry.ledger.assign(orders, DeclaredColumns(key=None, value=message(id=1)), table=table)
        assert min(entry.field_id for entry in assignment.state.entries) == 501

    def test_a_table_ahead_of_the_registry_stops(self, registry: Registry, orders: TopicRow, tmp_path: Path):
        table = MemoryCatalog(tmp_path).load()
        with pytest.raises(RegistryBehind, match="newer backup"):
            registry.ledger.assign(orders, DeclaredColumns(key=None, value=None), table=table)

    def test_another_table_or_none_stops(self, registry: Registry, orders: TopicRow, tmp_path: Path):
        registry.ledger.assign(orders, DeclaredColumns(key=None, value=None), table=None)
        registry.ledger.assign(
            orders, DeclaredColumns(key=None, value=None), table=MemoryCatalog(tmp_path / "a").load()
        )
        for table in (MemoryCatalog(tmp_path / "b").load(), None):
            with pytest.raises(RegistryBehind, match="not the one the registry knows"):
                registry.ledger.assign(orders, DeclaredColumns(key=None, value=None), table=table)


def assign_in_a_process(dsn: str, topic: TopicRow, value: SourceSchema) -> dict[tuple[int, ...], int]:
    with Registry(dsn) as registry:
        assignment = registry.ledger.assign(topic, DeclaredColumns(key=None, value=value), table=None)
    return {entry.path: entry.field_id for entry in assignment.state.entries if entry.root == "val"}
