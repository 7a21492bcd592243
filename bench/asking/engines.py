"""Spark, Trino, DuckDB and Polars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tables.flights import field

from asking.questions import PLANE, SINCE, UNTIL, PlaneQuestion, Sought
from tests.support.archive.engine_readers import PolarsReader
from tests.support.archive.three_engines import duckdb_on
from tests.support.pruning.askers import literal
from tests.support.servers.stack import Stack

Rows = list[tuple[Any, ...]]
Ask = Callable[[str, PlaneQuestion, str], Rows]
"""Asked of a table; the last is the column that it is partitioned by."""
ENGINES = ("spark", "trino", "duckdb", "polars")


@contextmanager
def engine(name: str, stack: Stack, folder: Path, sought: Sought) -> Iterator[Ask]:
    match name:
        case "spark":
            from archiver.demo.settings import sql_options
            from archiver.engine.spark import SparkEngine
            from archiver.local.fetch import fetch_iceberg

            options = sql_options(stack.endpoints, fetch_iceberg(lambda _: None))
            with SparkEngine.start({"master": "local[2]", **options}) as spark:
                yield lambda table, question, time: [
                    tuple(row)
                    for row in spark.session.sql(_sql(question, f"lake.{table}", time, sought, name)).collect()
                ]
        case "trino":
            from tests.support.servers.trino import trino

            with trino(stack, folder / "trino") as server:
                yield lambda table, question, time: [
                    tuple(row) for row in server.rows(_sql(question, table, time, sought, name))
                ]
        case "duckdb":
            yield lambda table, question, time: _in_duckdb(stack, _sql(question, f"lake.{table}", time, sought, name))
        case "polars":
            reader = PolarsReader(stack)
            yield (
                lambda table, question, time: question.polars(reader.scan(table), field(time), sought).collect().rows()
            )
        case _:
            raise ValueError(name)


def _in_duckdb(stack: Stack, statement: str) -> Rows:
    with duckdb_on(stack) as connection:
        return list(connection.sql(statement).fetchall())


def _sql(question: PlaneQuestion, table: str, time: str, sought: Sought, dialect: str) -> str:
    values = {
        "since": SINCE,
        "until": UNTIL,
        "partition": sought.partition,
        "offset": sought.offset,
        "key": sought.key,
        "plane": PLANE,
    }
    return question.sql.format(
        table=table, time=time, **{name: literal(value, dialect) for name, value in values.items()}
    )
