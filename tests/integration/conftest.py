"""The Spark session that integration tests share: it runs the job's tasks, and reads Iceberg tables as `lake`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from archiver.demo.settings import fetch_iceberg, sql_options
from archiver.engine.spark import SparkEngine
from tests.apicurio import apicurio
from tests.stack import Stack


@pytest.fixture(scope="session")
def engine(stack: Stack) -> Iterator[SparkEngine]:
    """Real Spark, two cores, Iceberg on its class path."""
    options = sql_options(stack.endpoints, fetch_iceberg(lambda _: None))
    with SparkEngine.start({"master": "local[2]", **options}) as started:
        yield started


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The url of a schema registry that others wrote: Apicurio, or what ARCHIVER_TEST_SCHEMA_REGISTRY names."""
    if named := os.environ.get("ARCHIVER_TEST_SCHEMA_REGISTRY"):
        yield named
        return
    with apicurio(tmp_path_factory.mktemp("apicurio")) as url:
        yield url
