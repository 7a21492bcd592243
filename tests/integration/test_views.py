"""Views in Spark and DuckDB."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.engine.spark import SparkEngine
from archiver.views.duckdb import register
from tests.support.archive import flat_rows
from tests.support.archive.job_runs import archive_once, read
from tests.support.archive.three_engines import EXTENSIONS, extension
from tests.support.schemas.order_schema import ORDER_PROTO
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]


@dataclass(frozen=True, slots=True)
class Orders:
    topic: str
    config: Path
    proto: Path
    rows: list[dict[str, Any]]


@pytest.fixture(scope="module", params=["nested", "flat"])
def orders(stack: Stack, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Orders:
    proto = tmp_path_factory.mktemp("schema") / "order.proto"
    proto.write_text(ORDER_PROTO)
    topic = stack.topic(2)
    stack.produce(topic, *flat_rows.orders())
    value = {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}
    config = stack.config({topic: {"value": value, "partition_source": request.param}})
    archive_once(config, topic)
    return Orders(topic, config, proto, read(stack, config, topic).to_pylist())


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    config = {"allow_unsigned_extensions": "true", "autoinstall_known_extensions": "false"}
    with duckdb.connect(config=config) as connection:
        for name in EXTENSIONS:
            connection.execute(f"LOAD '{extension(name)}'")
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def statement(orders: Orders, *options: str) -> str:
    done = CliRunner().invoke(app, ["views", orders.topic, "--config", str(orders.config), "--no-json", *options])
    assert done.exit_code == 0, done.output
    return done.stdout.rstrip().removesuffix(";")


def by_spark(engine: SparkEngine, orders: Orders, *options: str) -> list[dict[str, Any]]:
    engine.session.sql(statement(orders, "--temporary", "--name", "asked", *options))
    rows: list[dict[str, Any]] = engine.session.table("asked").toArrow().to_pylist()
    gc.collect()  # PySpark's sockets, while their warning is ignored
    return rows


def by_duckdb(connection: duckdb.DuckDBPyConnection, orders: Orders, **options: Any) -> list[dict[str, Any]]:
    (name,) = register(connection, orders.config, orders.topic, **options)
    rows: list[dict[str, Any]] = connection.sql(f'SELECT * FROM "{name}"').to_arrow_table().to_pylist()
    return rows


@pytest.mark.parametrize("form", flat_rows.FORMS)
def test_the_flat_view_has_every_row(
    orders: Orders, engine: SparkEngine, connection: duckdb.DuckDBPyConnection, form: str
) -> None:
    shown = [flat_rows.flat(row, flat_rows.FORMS[form]) for row in orders.rows]
    assert len(shown) == len(list(flat_rows.orders()))
    in_spark, in_duckdb = by_spark(engine, orders, "--bytes", form), by_duckdb(connection, orders, bytes_as=form)
    assert tuple(in_spark[0]) == tuple(in_duckdb[0]) == flat_rows.FLAT
    assert flat_rows.texts(in_spark) == flat_rows.texts(shown)
    assert flat_rows.texts(in_duckdb) == flat_rows.texts(shown)


def test_filters_on_a_view_skip_files_in_spark(orders: Orders, engine: SparkEngine) -> None:
    engine.session.sql(statement(orders, "--temporary", "--name", "asked"))
    asked = engine.session.table("asked").where("kafka_offset >= 20 AND address_city = 'Bern'").select("id")
    plan = asked._jdf.queryExecution().executedPlan().toString()
    assert "kafka.offset >= 20" in plan
    assert "val.address.city = 'Bern'" in plan


def test_the_latest_view_is_the_compacted_topic(
    orders: Orders, engine: SparkEngine, connection: duckdb.DuckDBPyConnection
) -> None:
    shown = flat_rows.latest(orders.rows, flat_rows.FORMS["raw"])
    assert 5 < len(shown) < 13
    assert flat_rows.texts(by_spark(engine, orders, "--latest")) == flat_rows.texts(shown)
    assert flat_rows.texts(by_duckdb(connection, orders, rows="latest")) == flat_rows.texts(shown)


def test_the_view_of_errors_has_the_bytes(
    orders: Orders, engine: SparkEngine, connection: duckdb.DuckDBPyConnection
) -> None:
    shown = flat_rows.errors(orders.rows, flat_rows.FORMS["hex"])
    assert {row["value_error"] is None for row in shown} == {True, False}
    assert flat_rows.texts(by_spark(engine, orders, "--errors", "--bytes", "hex")) == flat_rows.texts(shown)
    assert flat_rows.texts(by_duckdb(connection, orders, rows="errors", bytes_as="hex")) == flat_rows.texts(shown)


def test_saved_queries_go_on_after_a_rename(
    stack: Stack, tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    proto = tmp_path / "order.proto"
    proto.write_text(ORDER_PROTO)
    topic = stack.topic(2)
    stack.produce(topic, *flat_rows.orders(5))
    config = stack.config({topic: {"value": {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}}})
    archive_once(config, topic)
    (view,) = register(connection, config, topic)
    saved = f'SELECT kafka_partition, kafka_offset, customer FROM "{view}" ORDER BY ALL'
    before = connection.sql(saved).fetchall()

    proto.write_text(ORDER_PROTO.replace("string customer = 2;", "string buyer = 2; string customer = 20;"))
    stack.produce(topic, *flat_rows.orders(5))
    archive_once(config, topic)
    assert register(connection, config, topic) == (view,)
    after = connection.sql(saved).fetchall()
    assert len(after) == 2 * len(before)
    assert set(before) < set(after)
    rows = read(stack, config, topic).to_pylist()
    assert set(after) == {
        (row["kafka"]["partition"], row["kafka"]["offset"], row["val"] and row["val"]["buyer"]) for row in rows
    }
    assert "val_customer" in connection.sql(f'SELECT * FROM "{view}"').columns
