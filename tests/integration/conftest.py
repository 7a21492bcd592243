"""The Spark session that integration tests share: it runs the job's tasks, and reads Iceberg tables as `lake`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from archiver.demo.settings import fetch_iceberg, sql_options
from archiver.engine.spark import SparkEngine
from tests.stack import Stack


@pytest.fixture(scope="session")
def engine(stack: Stack) -> Iterator[SparkEngine]:
    """Real Spark, two cores, Iceberg on its class path."""
    options = sql_options(stack.endpoints, fetch_iceberg(lambda _: None))
    with SparkEngine.start({"master": "local[2]", **options}) as started:
        yield started
