"""The engines of `make interop`, each started once."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from tests.support.archive.engine_findings import Findings
from tests.support.archive.reference_topic import ReferenceTopic, archive_reference
from tests.support.schemas.reference_schema import VERSIONS
from tests.support.servers.clickhouse import Clickhouse
from tests.support.servers.clickhouse import clickhouse as running_clickhouse
from tests.support.servers.stack import Stack

if TYPE_CHECKING:
    from tests.support.servers.trino import Trino

if importlib.util.find_spec("trino") is None:  # requirements/interop.txt, which only `make interop` installs
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def trino(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    from tests.support.servers import trino

    with trino.trino(stack, tmp_path_factory.mktemp("trino")) as running:
        yield running


@pytest.fixture(scope="session")
def clickhouse() -> Iterator[Clickhouse]:
    with running_clickhouse() as running:
        yield running


@pytest.fixture(scope="session")
def reference(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ReferenceTopic]:
    return {
        f"{kind}{suffix}": archive_reference(
            stack, tmp_path_factory.mktemp("reference"), native=kind == "native", versions=versions
        )
        for kind in ("plain", "native")
        for suffix, versions in (("", VERSIONS[-1:]), (", changed", VERSIONS))
    }


@pytest.fixture(scope="session")
def findings(stack: Stack, reference: Mapping[str, ReferenceTopic], request: pytest.FixtureRequest) -> Findings:
    from tests.support.archive import engine_readers as readers

    running = request.getfixturevalue
    made: Mapping[str, Callable[[], readers.Reader]] = {
        "spark": lambda: readers.SparkReader(running("engine")),
        "trino": lambda: readers.TrinoReader(running("trino")),
        "duckdb": lambda: readers.DuckdbReader(stack),
        "pyiceberg": lambda: readers.PyicebergReader(stack),
        "polars": lambda: readers.PolarsReader(stack),
        "clickhouse": lambda: readers.ClickhouseReader(stack, running("clickhouse"), whole=False),
        "clickhouse, whole": lambda: readers.ClickhouseReader(stack, running("clickhouse"), whole=True),
        "datafusion": lambda: readers.DatafusionReader(stack, by_pyiceberg=False),
        "datafusion, by pyiceberg": lambda: readers.DatafusionReader(stack, by_pyiceberg=True),
    }
    return Findings(stack, reference, lambda name: made[name]())
