"""Engines on tables partitioned by nested columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pytest

from archiver.config import load_config
from archiver.demo.flights import events, read_flights
from archiver.demo.settings import MESSAGE, deploy_schema
from tests.support.archive.job_runs import archive_once
from tests.support.archive.partitioned import check_files
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.three_engines import duckdb_on
from tests.support.engine.inline_engine import InlineEngine
from tests.support.pruning.askers import spark_asker
from tests.support.pruning.layout import layout_of, touched
from tests.support.servers import trino
from tests.support.servers.stack import Stack
from tests.support.storage.counting_proxy import CountingProxy, counting_proxy

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

FLIGHTS: Final = 30_000
PARTITIONS: Final = 2
RUNS: Final = 2
TERMS: Final = ["val.origin", "bucket(4, val.dest)", "truncate(512, val.departure.scheduled)"]
FILTERS: Final = {
    "val.origin = 'JFK'": pc.field("origin") == "JFK",
    "val.dest = 'LAX'": pc.field("dest") == "LAX",
    "val.departure.scheduled BETWEEN 1000 AND 1200": (pc.field("sched_dep_time") >= 1000)
    & (pc.field("sched_dep_time") <= 1200),
    "val.origin = 'EWR' AND val.dest = 'ORD' AND val.departure.scheduled < 700": (pc.field("origin") == "EWR")
    & (pc.field("dest") == "ORD")
    & (pc.field("sched_dep_time") < 700),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flights:
    topic: str
    config: Path
    table: str
    stack: Stack
    proxy: CountingProxy


Ask = Callable[[str], tuple[int, int]]
"""Runs a statement; what it counted and summed up."""


@pytest.fixture(scope="module")
def flights(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flights]:
    folder = tmp_path_factory.mktemp("flights")
    message = deploy_schema(folder, 1)
    topic = stack.topic(PARTITIONS)
    value = {"format": "protobuf", "message": MESSAGE, "proto": str(folder / "flight.proto")}
    config = stack.config({topic: {"value": value, "partition_by": TERMS}})
    rows, size = read_flights(), FLIGHTS // RUNS
    for turn in range(RUNS):
        made = events(rows.slice(turn * size, size), message)
        stack.produce(
            topic, *({"key": event.key, "value": event.value, "timestamp": event.timestamp} for event in made)
        )
        archive_once(config, topic, engine=InlineEngine())
    with counting_proxy(stack.s3_endpoint, folder) as proxy:
        yield Flights(
            topic=topic,
            config=config,
            table=load_config(config).topic(topic).table,
            stack=Stack(replace(stack.endpoints, s3_endpoint=proxy.endpoint), folder),
            proxy=proxy,
        )


@pytest.fixture
def ask(flights: Flights, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Ask]:
    with ExitStack() as running:
        match request.param:
            case "spark":
                spark = running.enter_context(spark_asker(flights.stack))
                yield lambda statement: _pair(spark.run(statement))
            case "trino":
                server = running.enter_context(trino.trino(flights.stack, tmp_path_factory.mktemp("trino")))
                yield lambda statement: _pair(server.rows(statement)[0])
            case "duckdb":
                yield lambda statement: _by_duckdb(flights.stack, statement)


def _pair(row: list[int]) -> tuple[int, int]:
    return int(row[0]), int(row[1] or 0)


def _by_duckdb(stack: Stack, statement: str) -> tuple[int, int]:
    with duckdb_on(stack) as connection:
        row = connection.sql(statement).fetchone()
    assert row is not None
    return _pair(list(row))


@pytest.mark.parametrize(("by", "ask"), [(name, name) for name in ("spark", "trino", "duckdb")], indirect=["ask"])
def test_filters_by_partition_give_all_rows_and_open_fewer_files(flights: Flights, by: str, ask: Ask) -> None:
    table = flights.stack.catalog().load_table(flights.table)
    files, rows = layout_of(table), read_flights().slice(0, FLIGHTS)
    for condition, expression in FILTERS.items():
        selected = rows.filter(expression)
        mark = flights.proxy.mark()
        answer = ask(f"SELECT count(*) AS n, sum(val.miles) AS c FROM lake.{flights.table} WHERE {condition}")
        assert answer == (selected.num_rows, pc.sum(selected["distance"]).as_py()), condition
        opened = touched(files, flights.proxy.since(mark), ["val.miles"])
        planned = len(list(table.scan(row_filter=_for_pyiceberg(condition)).plan_files()))
        assert 0 < planned <= len(files) // 2
        most = planned
        if by == "duckdb":  # it leaves out files by a value, none as soon as the filter has a range
            most = len(files) if "scheduled" in condition else len(files) // 2
        assert 0 < opened.files <= most, (condition, opened, planned)


def _for_pyiceberg(condition: str) -> str:
    return condition.replace("BETWEEN 1000 AND 1200", ">= 1000 AND val.departure.scheduled <= 1200")


def test_the_files_that_trino_writes_are_in_their_partitions(flights: Flights, tmp_path: Path) -> None:
    before = check_files(flights.stack.catalog().load_table(flights.table))
    kafka = from_kafka(flights.stack, flights.topic, PARTITIONS)
    assert len(kafka) > FLIGHTS
    assert from_archive(flights.config, flights.topic, PARTITIONS) == kafka
    with trino.trino(flights.stack, tmp_path) as server:
        server.rows(f"ALTER TABLE {flights.table} EXECUTE optimize")
    after = check_files(flights.stack.catalog().load_table(flights.table))
    assert after.keys() == before.keys()
    assert after.total() < before.total() // 2
    assert from_archive(flights.config, flights.topic, PARTITIONS) == kafka
