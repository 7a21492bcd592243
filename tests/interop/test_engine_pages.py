"""The pages of other engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.archive.documented_queries import (
    FIRST_QUERIES,
    Block,
    archive_documented,
    first_rows,
    named,
    read_blocks,
)
from tests.support.servers import trino as launcher
from tests.support.servers.clickhouse import Clickhouse
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.interop

PLACES = 'uri="https://catalog.example.com", warehouse="lake"'


@pytest.fixture(scope="module")
def tables(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return archive_documented(stack, tmp_path_factory.mktemp("schema"))


@pytest.fixture(autouse=True)
def planner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")


def blocks(engine: str) -> tuple[list[Block], Block]:
    every = read_blocks(f"engines/{engine}.md")
    (queries,) = (block for block in every if block.heading == FIRST_QUERIES)
    return [block for block in every if block is not queries], queries


def connected(engine: str, stack: Stack, tables: Mapping[str, str]) -> dict[str, Any]:
    (connect,), _ = blocks(engine)
    servers = stack.endpoints
    store = {
        "aws_endpoint_url": servers.s3_endpoint,
        "aws_access_key_id": servers.access_key,
        "aws_secret_access_key": servers.secret_key,
        "aws_region": servers.s3_region,
        "aws_allow_http": "true",
    }
    code = connect.code
    assert PLACES in code
    for documented, real in {
        PLACES: "**properties",
        '{"aws_access_key_id": "key", "aws_secret_access_key": "secret", "aws_region": "eu-central-1"}': "here",
    }.items():
        code = code.replace(documented, real)
    names: dict[str, Any] = {"properties": stack.catalog_properties, "here": store}
    exec(compile(named(code, tables), f"{engine}.md", "exec"), names)
    return names


def test_trino(stack: Stack, tables: Mapping[str, str], trino: launcher.Trino) -> None:
    (settings,), queries = blocks("trino")
    properties = dict(line.split("=", 1) for line in settings.code.splitlines())
    set_here = launcher.catalog_properties(stack)
    assert set(properties) <= set(set_here)
    choices = {name: value for name, value in properties.items() if value in ("iceberg", "rest", "OAUTH2", "true")}
    assert choices == {name: set_here[name] for name in choices}
    answers = [trino.rows(named(statement, tables)) for statement in queries.statements]
    assert [[tuple(row) for row in rows] for rows in answers] == first_rows()


def test_athena_is_told_the_queries_of_trino() -> None:
    _, athena = blocks("athena")
    _, by_trino = blocks("trino")
    assert athena.code.replace("FROM kafka.", "FROM lake.kafka.") == by_trino.code


def test_polars(stack: Stack, tables: Mapping[str, str]) -> None:
    names = connected("polars", stack, tables)
    _, queries = blocks("polars")
    exec(compile(queries.code, "polars.md", "exec"), names)
    assert [names["records"], names["cities"], names["broken"]] == first_rows()


def test_clickhouse(stack: Stack, tables: Mapping[str, str], clickhouse: Clickhouse) -> None:
    (connect,), queries = blocks("clickhouse")
    servers = stack.endpoints
    for statement in ("DROP DATABASE IF EXISTS lake", *connect.statements):
        for documented, real in {
            "'key'": f"'{servers.access_key}'",
            "'secret'": f"'{servers.secret_key}'",
            "'key:secret'": f"'{servers.access_key}:{servers.secret_key}'",
            "'lake'": f"'{servers.warehouse}'",
            "https://catalog.example.com": servers.catalog_uri,
            "https://s3.example.com": servers.s3_endpoint,
        }.items():
            statement = statement.replace(documented, real)  # noqa: PLW2901
        clickhouse.run(statement)
    answers = [clickhouse.query(named(statement, tables)) for statement in queries.statements]
    assert [[tuple(map(text, row.values())) for row in rows.to_pylist()] for rows in answers] == first_rows()


def text(value: Any) -> Any:
    """Strings of ClickHouse are bytes."""
    return value.decode() if isinstance(value, bytes) else value


def test_datafusion(stack: Stack, tables: Mapping[str, str]) -> None:
    names = connected("datafusion", stack, tables)
    _, queries = blocks("datafusion")
    answers = [names["context"].sql(statement).to_arrow_table() for statement in queries.statements]
    assert [[tuple(row.values()) for row in rows.to_pylist()] for rows in answers] == first_rows()
