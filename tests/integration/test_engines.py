"""Spark SQL, DuckDB and pyiceberg read equal rows."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from tests.support.archive.job_runs import archive_once
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_pyiceberg, rows_of_spark
from tests.support.schemas.order_schema import ORDER_PROTO, order_bytes
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

PARTITIONS = 2
LAST = 1_700_000_000_000 + 404 * 3_600_000
MANY = 6_000
"""Orders of one day: enough in one file for encodings by their values."""


@pytest.fixture(params=["nested", "flat"])
def table(stack: Stack, tmp_path: Path, engine: SparkEngine, request: pytest.FixtureRequest) -> str:
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
    many = ({"value": order_bytes(noise), "timestamp": LAST + number} for number in range(MANY))
    stack.produce(topic, *many)
    value = {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}
    config = stack.config({topic: {"value": value, "partition_source": request.param}})
    archive_once(config, topic, engine=engine)
    return load_config(config).topic(topic).table


def test_spark_duckdb_and_pyiceberg_read_equal_rows(stack: Stack, table: str, engine: SparkEngine) -> None:
    by_pyiceberg = rows_of_pyiceberg(stack, table)
    assert len(by_pyiceberg) == 404 + MANY
    assert by_pyiceberg == rows_of_spark(engine, table)
    assert by_pyiceberg == rows_of_duckdb(stack, table)
