"""One table, three readers that are not ours: Spark SQL, DuckDB and pyiceberg give equal rows."""

from __future__ import annotations

import json
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyiceberg.catalog import load_catalog

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from tests.integration.archiving import archive_once
from tests.integration.order_schema import ORDER_PROTO, order_bytes
from tests.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

PARTITIONS = 2
EXTENSIONS = ("httpfs", "avro", "iceberg")


@pytest.fixture(params=["nested", "flat"])
def table(stack: Stack, tmp_path: Path, engine: SparkEngine, request: pytest.FixtureRequest) -> str:
    """A table of orders, tombstones and garbage; its full name."""
    proto = tmp_path / "order.proto"
    proto.write_text(ORDER_PROTO)
    topic = stack.topic(PARTITIONS)
    noise = random.Random(5)
    values = [order_bytes(noise) for _ in range(400)] + [None, b"", b"\xff\xff", noise.randbytes(50)]
    messages = (
        {
            "key": f"k{number % 7}" if number % 5 else None,
            "value": value,
            "partition": number % PARTITIONS,
            "timestamp": 1_700_000_000_000 + number * 3_600_000,
            "headers": [("h", str(number).encode()), ("h", None)] if number % 4 else None,
        }
        for number, value in enumerate(values)
    )
    stack.produce(topic, *messages)
    value = {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}
    config = stack.config({topic: {"value": value, "partition_source": request.param}})
    archive_once(config, topic, engine=engine)
    return load_config(config).topic(topic).table


def test_spark_duckdb_and_pyiceberg_read_equal_rows(stack: Stack, table: str, engine: SparkEngine) -> None:
    by_pyiceberg = rows_of_pyiceberg(stack, table)
    assert len(by_pyiceberg) == 404
    assert by_pyiceberg == rows_of_spark(engine, table)
    assert by_pyiceberg == rows_of_duckdb(stack, table)


def rows_of_pyiceberg(stack: Stack, table: str) -> list[str]:
    loaded = load_catalog("lake", **stack.catalog_properties).load_table(table)
    return canonical(loaded.scan().to_arrow().to_pylist())


def rows_of_spark(engine: SparkEngine, table: str) -> list[str]:
    return canonical(engine.session.table(f"lake.{table}").toArrow().to_pylist())


def rows_of_duckdb(stack: Stack, table: str) -> list[str]:
    with duckdb_on(stack) as connection:
        return canonical(connection.sql(f"SELECT * FROM lake.{table}").to_arrow_table().to_pylist())


class duckdb_on:  # noqa: N801 - reads as a function
    """A DuckDB connection with the stack's catalog attached as `lake`."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def __enter__(self) -> duckdb.DuckDBPyConnection:
        self._connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        for name in EXTENSIONS:
            self._connection.execute(f"LOAD '{extension(name)}'")
        endpoints = self._stack.endpoints
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute(
            f"CREATE SECRET s3 (TYPE s3, KEY_ID '{endpoints.access_key}', SECRET '{endpoints.secret_key}', "
            f"ENDPOINT '{endpoints.s3_endpoint.removeprefix('http://')}', URL_STYLE 'path', USE_SSL false, "
            f"REGION '{endpoints.s3_region}')"
        )
        self._connection.execute(
            f"CREATE SECRET lake_secret (TYPE iceberg, CLIENT_ID '{endpoints.access_key}', "
            f"CLIENT_SECRET '{endpoints.secret_key}', OAUTH2_SERVER_URI '{endpoints.catalog_uri}/v1/oauth/tokens')"
        )
        self._connection.execute(
            f"ATTACH '{endpoints.warehouse}' AS lake "
            f"(TYPE iceberg, ENDPOINT '{endpoints.catalog_uri}', SECRET lake_secret, ACCESS_DELEGATION_MODE 'none')"
        )
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()


def extension(name: str) -> Path:
    """The file of a DuckDB extension, from its wheel."""
    import importlib.util

    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    assert spec is not None
    assert spec.submodule_search_locations
    return next(Path(next(iter(spec.submodule_search_locations))).rglob(f"{name}.duckdb_extension"))


def canonical(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as texts that are equal when the rows are, whatever each engine makes of maps, times and bytes."""
    for row in rows:
        if row["val"] and row["val"]["__err__"]:
            # pyiceberg 0.12 shows a null list of structs as an empty one; only values that can't be decoded have such.
            row["val"] = {name: None if value == [] else value for name, value in row["val"].items()}
    ordered = sorted(rows, key=lambda row: (row["kafka"]["partition"], row["kafka"]["offset"]))
    return [json.dumps(plain(row), sort_keys=True) for row in ordered]


def plain(value: Any) -> Any:  # noqa: PLR0911 - one return for each kind of value
    match value:
        case dict() if set(value) == {"key", "value"} and isinstance(value["key"], list):
            return [[plain(key), plain(item)] for key, item in zip(value["key"], value["value"], strict=True)]
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case tuple():
            return [plain(each) for each in value]
        case list():
            return [plain(each) for each in value]
        case bytes() | bytearray():
            return bytes(value).hex()
        case datetime():
            return value.timestamp()
        case float():
            return value.hex()
        case _:
            return value
