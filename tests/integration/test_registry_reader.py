"""The registry for readers with SELECT."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from archiver.archive.mappings import RegistryMappings
from archiver.config import load_config
from catalog.errors import RegistryDenied, RegistryNotMigrated, RegistryOutdated
from catalog.registry import Registry, RegistryReader
from catalog.registry.ledger import DeclaredColumns
from catalog.registry.postgres import Postgres
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.catalog_files import message
from tests.support.catalog.foreign_writes import compact
from tests.support.catalog.migrated import MIGRATIONS, migrate_up_to
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.order_schema import ORDER_PROTO
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration


@pytest.fixture
def dsn(stack: Stack) -> str:
    return stack.database()


def execute(dsn: str, statement: sql.Composable | str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(statement.encode() if isinstance(statement, str) else statement)


def select_only(dsn: str, *tables: str) -> str:
    role = unique("reader")
    name = sql.Identifier(role)
    execute(dsn, sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'hush'").format(name))
    granted = sql.SQL(", ").join(map(sql.Identifier, tables)) if tables else sql.SQL("ALL TABLES IN SCHEMA public")
    execute(dsn, sql.SQL("GRANT SELECT ON {} TO {}").format(granted, name))
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=f"{role}:hush@{parts.hostname}:{parts.port}"))


def contents(dsn: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
            " ORDER BY 1, 2"
        ).fetchall()
        is_migrated = ("migrations", "number") in {row[:2] for row in columns}
        return columns + (connection.execute("SELECT * FROM migrations ORDER BY 1").fetchall() if is_migrated else [])


def test_a_role_that_may_only_select_reads_topics_and_columns(dsn: str) -> None:
    with Registry(dsn) as registry:
        orders = registry.topics.register(cluster_id="c", topic="orders", topic_id=UUID(int=1), table="kafka.orders")
        assigned = registry.ledger.assign(orders, DeclaredColumns(key=None, value=message(id=1, note=2)), table=None)
    with RegistryReader(select_only(dsn)) as reader:
        assert reader.topics.every() == (orders,)
        assert reader.topics.find(cluster_id="c", topic="orders") == orders
        assert reader.ledger.load(orders) == assigned.state
        assert [entry.version for entry in reader.ledger.history(orders)] == [1]
        assert reader.ledger.row_mapping(orders, 1).to_json() == assigned.row.to_json()


def test_even_the_owner_changes_nothing_while_reading(dsn: str) -> None:
    Registry(dsn).close()
    database = Postgres.read_only(dsn)

    def write() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO topics (cluster_id, topic, table_name) VALUES ('c', 't', 't')")

    with pytest.raises(RegistryDenied, match="read-only transaction"):
        write()
    database.close()
    with Registry(dsn) as registry:
        assert registry.topics.every() == ()


@pytest.mark.parametrize("count", range(len(MIGRATIONS)))
def test_database_lacking_migrations_is_refused_unchanged(dsn: str, count: int) -> None:
    migrate_up_to(dsn, count)
    before = contents(dsn)
    with pytest.raises(RegistryNotMigrated, match=f"lacks {MIGRATIONS[count][0]}.*`archiver archive`"):
        RegistryReader(dsn)
    assert contents(dsn) == before
    Registry(dsn).close()
    RegistryReader(dsn).close()


def test_database_without_a_registry_is_refused_and_stays_empty(dsn: str) -> None:
    with pytest.raises(RegistryNotMigrated, match="no registry in this database") as caught:
        RegistryReader(dsn)
    assert contents(dsn) == []
    assert caught.value.context["database"] == urlsplit(dsn).path[1:]


def test_a_database_of_a_newer_archiver_is_refused(dsn: str) -> None:
    Registry(dsn).close()
    execute(dsn, "INSERT INTO migrations (number, name) VALUES (9999, '9999_later')")
    with pytest.raises(RegistryOutdated, match="9999"):
        RegistryReader(dsn)


def test_a_right_that_is_lacking_is_named(dsn: str) -> None:
    Registry(dsn).close()
    with RegistryReader(select_only(dsn, "migrations")) as reader, pytest.raises(RegistryDenied, match="topics"):
        reader.topics.every()


def test_a_replay_needs_no_more_than_select(stack: Stack, tmp_path: Path) -> None:
    """Another engine removed the archiver's footer, and there is no journal: only the registry has the mapping."""
    proto = tmp_path / "order.proto"
    proto.write_text(ORDER_PROTO)
    topic = stack.topic()
    config = stack.config({topic: {"value": {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}}})
    stack.produce(topic, *({"value": b"\x08%c" % number, "partition": 0} for number in range(1, 9)))
    archive_once(config, topic, engine=InlineEngine())
    compact(stack, config, topic)
    owner = load_config(config).registry.dsn
    replaying = config.read_text().replace(owner, select_only(owner))
    config.write_text("\n".join(line for line in replaying.splitlines() if not line.startswith('"journal"')))
    assert load_config(config).archive.journal is None
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)

    execute(owner, "DELETE FROM migrations WHERE number = (SELECT max(number) FROM migrations)")
    before = contents(owner)
    with pytest.raises(RegistryNotMigrated, match=MIGRATIONS[-1][0]):
        from_archive(config, topic, 1)
    assert contents(owner) == before


def test_a_topic_that_the_registry_does_not_know_has_no_mapping(dsn: str) -> None:
    Registry(dsn).close()
    assert mappings(select_only(dsn), "gone", UUID(int=1)).row_mapping(1) is None


def test_the_mappings_of_another_table_of_the_topic_do_not_count(dsn: str) -> None:
    """As in the replica of a registry that was replaced when the topic's archive began again."""
    with Registry(dsn) as registry:
        topic = registry.topics.register(cluster_id="c", topic="orders", topic_id=None, table="kafka.orders")
        registry.ledger.assign(topic, DeclaredColumns(key=None, value=None), table=None)
    reader = select_only(dsn)
    assert mappings(reader, "orders", UUID(int=1)).row_mapping(1) is not None
    execute(dsn, sql.SQL("UPDATE topics SET table_uuid = {}").format(UUID(int=1)))
    assert mappings(reader, "orders", UUID(int=1)).row_mapping(1) is not None
    assert mappings(reader, "orders", UUID(int=2)).row_mapping(1) is None


def mappings(dsn: str, topic: str, table: UUID) -> RegistryMappings:
    return RegistryMappings(dsn=dsn, cluster_id="c", topic=topic, table_uuid=table)
