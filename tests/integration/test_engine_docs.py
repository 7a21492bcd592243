"""The code of docs/engines.md, Spark, DuckDB and pyiceberg.

The other pages: tests/interop/test_engine_pages.py.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import pytest

from archiver.engine.spark import SparkEngine
from archiver.local.fetch import ICEBERG_JARS
from tests.support.archive.documented_queries import (
    FIRST_QUERIES,
    Block,
    archive_documented,
    first_rows,
    named,
    read_blocks,
)
from tests.support.archive.three_engines import plain
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

BLOCKS = read_blocks("engines.md", "engines/spark.md", "engines/duckdb.md", "engines/pyiceberg.md")
QUESTIONS = [heading for heading in dict.fromkeys(block.heading for block in BLOCKS) if heading.endswith("?")]
EXPECTED: Mapping[str, tuple[Any, ...]] = {
    "How do I read a typed topic?": ("Bern", 22, 53),
    "How do I read JSON from a raw topic?": ("/", 20),
    "Which time is which?": (1, 3, 3, 3),
    "Where are tombstones, nulls and empty values?": (1, 1, 1, 1),
    "What is broken, kept raw, or unknown to the schema?": (47, 2, 1, 1),
    "How do I get at headers?": ("t0", 30),
}
"""The first row of each question's first answer."""


@pytest.fixture(scope="module")
def tables(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return archive_documented(stack, tmp_path_factory.mktemp("schema"))


def test_every_question_has_a_query_for_each_sql_engine() -> None:
    assert set(EXPECTED) == set(QUESTIONS)
    tested = {"spark", "duckdb", "pyiceberg", "connect", "offline"}
    for block in BLOCKS:
        assert block.marks <= tested, block
        assert block.marks or block.language == "properties", block
    for heading in QUESTIONS:
        marks = set().union(*(block.marks for block in BLOCKS if block.heading == heading))
        assert {"spark", "duckdb"} <= marks, heading


def test_spark_is_told_the_jars_that_are_tested() -> None:
    (block,) = [block for block in BLOCKS if block.heading == "Spark's settings"]
    settings = dict(line.split(maxsplit=1) for line in block.code.splitlines())
    jars = [f"{jar.organisation}:{jar.name}:{jar.revision}" for jar in ICEBERG_JARS]
    assert settings["spark.jars.packages"].split(",") == jars


@pytest.fixture(scope="module")
def attached(stack: Stack) -> Iterator[duckdb.DuckDBPyConnection]:
    names: dict[str, Any] = {}
    (offline,) = [block for block in BLOCKS if "offline" in block.marks]
    exec(compile(offline.code, "engines.md", "exec"), names)
    (connect,) = [block for block in BLOCKS if block.marks == {"duckdb", "connect"}]
    lake = stack.endpoints
    with names["connection"] as connection:
        connection.execute(
            f"CREATE SECRET s3 (TYPE s3, KEY_ID '{lake.access_key}', SECRET '{lake.secret_key}', ENDPOINT "
            f"'{lake.s3_endpoint.removeprefix('http://')}', URL_STYLE 'path', USE_SSL false, REGION '{lake.s3_region}')"
        )
        connection.execute("SET TimeZone = 'UTC'")
        for statement in connect.statements:
            if statement.startswith(("INSTALL", "LOAD")):
                continue
            for example, real in {
                "'key'": f"'{lake.access_key}'",
                "'secret'": f"'{lake.secret_key}'",
                "'lake'": f"'{lake.warehouse}'",
                "https://catalog.example.com": lake.catalog_uri,
                "TYPE iceberg, ENDPOINT": "TYPE iceberg, ACCESS_DELEGATION_MODE 'none', ENDPOINT",
            }.items():
                statement = statement.replace(example, real)  # noqa: PLW2901
            connection.execute(statement)
        yield connection


def test_duckdb_fetches_no_extension(attached: duckdb.DuckDBPyConnection) -> None:
    assert attached.sql("SELECT current_setting('autoinstall_known_extensions')").fetchall() == [(False,)]
    asked = "SELECT extension_name, install_mode FROM duckdb_extensions() WHERE loaded AND NOT installed"
    assert {name for name, _ in attached.sql(asked).fetchall()} == {"httpfs", "avro", "iceberg"}


@pytest.mark.parametrize("heading", QUESTIONS)
def test_engines_answer_alike(
    heading: str, stack: Stack, tables: dict[str, str], engine: SparkEngine, attached: duckdb.DuckDBPyConnection
) -> None:
    asked = [block for block in BLOCKS if block.heading == heading]
    by_spark = [
        rows(engine.session.sql(named(statement, tables)).toArrow())
        for statement in statements_for("spark", asked)
        if is_query(statement) or engine.session.sql(statement) is None
    ]
    by_duckdb = [
        rows(attached.sql(named(statement, tables)).to_arrow_table())
        for statement in statements_for("duckdb", asked)
        if is_query(statement) or attached.execute(statement) is None
    ]
    assert all(by_spark)
    assert by_spark == by_duckdb
    assert by_spark[0][0] == EXPECTED[heading]
    for block in asked:
        if "pyiceberg" in block.marks:
            assert rows_of_python(block, stack, tables) in by_spark
    gc.collect()  # PySpark's sockets, while their warning is ignored


def test_first_queries(
    stack: Stack, tables: dict[str, str], engine: SparkEngine, attached: duckdb.DuckDBPyConnection
) -> None:
    asked = [block for block in BLOCKS if block.heading == FIRST_QUERIES]
    by_spark = [
        rows(engine.session.sql(named(statement, tables)).toArrow()) for statement in statements_for("spark", asked)
    ]
    by_duckdb = [
        rows(attached.sql(named(statement, tables)).to_arrow_table()) for statement in statements_for("duckdb", asked)
    ]
    (block,) = [block for block in asked if "pyiceberg" in block.marks]
    names = connected(stack, tables)
    exec(compile(named(block.code, tables), "pyiceberg.md", "exec"), names)
    assert by_spark == by_duckdb == [names["records"], names["cities"], names["broken"]] == first_rows()
    gc.collect()  # PySpark's sockets, while their warning is ignored


def test_python_connects(stack: Stack, tables: dict[str, str]) -> None:
    table = connected(stack, tables)["rows"]
    assert table.num_rows == 7
    assert set(table.column_names) == {"kafka", "val"}


def statements_for(mark: str, asked: list[Block]) -> Iterator[str]:
    for block in asked:
        if block.language == "sql" and mark in block.marks:
            yield from block.statements


def is_query(statement: str) -> bool:
    return statement.startswith("SELECT")


def rows(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(plain(value) for value in row.values()) for row in table.to_pylist()]


def connected(stack: Stack, tables: Mapping[str, str]) -> dict[str, Any]:
    (connect,) = [block for block in BLOCKS if block.language == "python" and "connect" in block.marks]
    places = 'uri="https://catalog.example.com", warehouse="lake"'
    assert places in connect.code
    names: dict[str, Any] = {"properties": stack.catalog_properties}
    exec(compile(named(connect.code.replace(places, "**properties"), tables), "engines.md", "exec"), names)
    return names


def rows_of_python(block: Block, stack: Stack, tables: Mapping[str, str]) -> list[tuple[Any, ...]]:
    names = connected(stack, tables)
    exec(compile(named(block.code, tables), "engines.md", "exec"), names)
    read: list[tuple[Any, ...]] = names["rows"]
    return read
