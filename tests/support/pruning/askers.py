"""Engines' queries, through a store that counts reads."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThanOrEqual

from archiver.local import Endpoints
from tests.support.archive.engine_readers import ClickhouseReader, IcebergProvider, PolarsReader
from tests.support.archive.three_engines import duckdb_on
from tests.support.pruning.questions import SUMMED, Answer, Question, Term, Value, column
from tests.support.servers.clickhouse import Clickhouse
from tests.support.servers.stack import Stack

if TYPE_CHECKING:
    from archiver.engine.spark import SparkEngine
    from tests.support.servers.trino import Trino

_TIMES: Final = {
    "trino": "TIMESTAMP '{} UTC'",
    "duckdb": "TIMESTAMPTZ '{}+00'",
    "clickhouse": "toDateTime64('{}', 6, 'UTC')",
}


class Asker(Protocol):
    def ask(self, table: str, question: Question) -> Answer: ...


class SparkAsker:
    """Has a process, as a session keeps its catalog's first endpoint."""

    def __init__(self, process: Executor) -> None:
        self._process = process

    def ask(self, table: str, question: Question) -> Answer:
        rows, cents = self.run(sql(f"lake.{table}", question, "spark"))
        return Answer(rows=rows, cents=cents or 0)

    def run(self, statement: str) -> list[Any]:
        return self._process.submit(_in_spark, statement).result()


@contextmanager
def spark_asker(stack: Stack) -> Iterator[SparkAsker]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=_start_spark, initargs=(stack.endpoints,)) as process:
        yield SparkAsker(process)
        process.submit(_stop_spark).result()


class TrinoAsker:
    def __init__(self, trino: Trino) -> None:
        self._trino = trino

    def ask(self, table: str, question: Question) -> Answer:
        ((rows, cents),) = self._trino.rows(sql(table, question, "trino"))
        return Answer(rows=rows, cents=cents or 0)


class DuckdbAsker:
    """A connection per query, as connections cache."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def ask(self, table: str, question: Question) -> Answer:
        with duckdb_on(self._stack) as connection:
            result = connection.sql(sql(f"lake.{table}", question, "duckdb")).fetchone()
        assert result is not None
        return Answer(rows=result[0], cents=int(result[1] or 0))


class PyicebergAsker:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def ask(self, table: str, question: Question) -> Answer:
        true: BooleanExpression = AlwaysTrue()
        for term in question.terms:
            true = And(true, _expression(term))
        scan = self._stack.catalog().load_table(table).scan(row_filter=true, selected_fields=(".".join(SUMMED),))
        rows = scan.to_arrow().combine_chunks().to_batches()
        values = [column(batch, SUMMED) for batch in rows]
        return Answer(rows=sum(map(len, values)), cents=sum(pc.sum(value).as_py() or 0 for value in values))


class PolarsAsker:
    def __init__(self, stack: Stack) -> None:
        self._reader = PolarsReader(stack)

    def ask(self, table: str, question: Question) -> Answer:
        import polars as pl

        scan = self._reader.scan(table)
        for term in question.terms:
            low, high = pl.lit(term.low), pl.lit(term.high)
            name = self._reader.path(term.path)
            scan = scan.filter(name == low if term.low == term.high else (name >= low) & (name <= high))
        cents = self._reader.path(SUMMED)
        (result,) = scan.select(cents.len().alias("rows"), cents.sum().alias("cents")).collect().to_dicts()
        return Answer(**result)


class ClickhouseAsker:
    def __init__(self, stack: Stack, running: Clickhouse) -> None:
        self._reader = ClickhouseReader(stack, running, whole=False)
        self._running = running
        running.run("SET use_parquet_metadata_cache = 0, use_query_condition_cache = 0")

    def ask(self, table: str, question: Question) -> Answer:
        (result,) = self._running.query(sql(self._reader.source(table), question, "clickhouse")).to_pylist()
        return Answer(rows=result["n"], cents=result["c"] or 0)


class DatafusionAsker:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def ask(self, table: str, question: Question) -> Answer:
        from datafusion import SessionContext

        context = SessionContext()
        loaded = self._stack.catalog().load_table(table)
        context.register_table("t", IcebergProvider(loaded, self._stack.endpoints.s3_properties))
        (result,) = context.sql(sql("t", question, "datafusion")).to_arrow_table().to_pylist()
        return Answer(rows=result["n"], cents=result["c"] or 0)


def sql(table: str, question: Question, dialect: str) -> str:
    result = f"SELECT count(*) AS n, sum({_field(SUMMED, dialect)}) AS c FROM {table}"
    terms = []
    for term in question.terms:
        name = _field(term.path, dialect)
        low, high = literal(term.low, dialect), literal(term.high, dialect)
        terms.append(f"{name} = {low}" if low == high else f"{name} BETWEEN {low} AND {high}")
    return result + (f" WHERE {' AND '.join(terms)}" if terms else "")


def _field(path: tuple[str, ...], dialect: str) -> str:
    if dialect == "datafusion":
        return path[0] + "".join(f"['{name}']" for name in path[1:])
    return ".".join(path)


def literal(value: Value, dialect: str) -> str:
    match value:
        case int():
            return str(value)
        case str():
            return f"'{value}'"
        case bytes():
            return {"duckdb": "from_hex('{}')", "clickhouse": "unhex('{}')"}.get(dialect, "X'{}'").format(value.hex())
        case datetime():
            return _TIMES.get(dialect, "TIMESTAMP '{}+00:00'").format(value.strftime("%Y-%m-%d %H:%M:%S.%f"))


def _expression(term: Term) -> BooleanExpression:
    low, high = (item.isoformat() if isinstance(item, datetime) else item for item in (term.low, term.high))
    if low == high:
        return EqualTo(term.name, low)
    return And(GreaterThanOrEqual(term.name, low), LessThanOrEqual(term.name, high))


_SPARK: list[SparkEngine] = []


def _start_spark(endpoints: Endpoints) -> None:
    from archiver.demo.settings import sql_options
    from archiver.engine.spark import SparkEngine
    from archiver.local.fetch import fetch_iceberg

    options = sql_options(endpoints, fetch_iceberg(lambda _: None))
    # A client that doesn't request credentials of SeaweedFS gets the store's own endpoint with each table, and uses it.
    options["spark.sql.catalog.lake.header.X-Iceberg-Access-Delegation"] = "vended-credentials"
    started = SparkEngine.start({"master": "local[2]", **options})
    _SPARK.append(started.__enter__())


def _in_spark(statement: str) -> list[Any]:
    (result,) = _SPARK[0].session.sql(statement).collect()
    return list(result)


def _stop_spark() -> None:
    _SPARK[0].__exit__(None, None, None)
