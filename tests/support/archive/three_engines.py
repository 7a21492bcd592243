"""Rows of a table by three foreign readers, in one form."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import AlwaysTrue

from archiver.engine.spark import SparkEngine
from tests.support.servers.stack import Stack

EXTENSIONS = ("httpfs", "avro", "iceberg")


def rows_of_pyiceberg(stack: Stack, table: str, where: str | None = None) -> list[str]:
    loaded = load_catalog("lake", **stack.catalog_properties).load_table(table)
    return canonical(loaded.scan(row_filter=where or AlwaysTrue()).to_arrow().to_pylist())


def rows_of_spark(engine: SparkEngine, table: str, where: str = "true") -> list[str]:
    return canonical(engine.session.table(f"lake.{table}").where(where).toArrow().to_pylist())


def rows_of_duckdb(stack: Stack, table: str, where: str = "true") -> list[str]:
    with duckdb_on(stack) as connection:
        result = connection.sql(f"SELECT * FROM lake.{table} WHERE {where}")
        return canonical(result.to_arrow_table().to_pylist())


@contextmanager
def duckdb_on(stack: Stack) -> Iterator[duckdb.DuckDBPyConnection]:
    endpoints = stack.endpoints
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        for name in EXTENSIONS:
            connection.execute(f"LOAD '{extension(name)}'")
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            f"CREATE SECRET s3 (TYPE s3, KEY_ID '{endpoints.access_key}', SECRET '{endpoints.secret_key}', "
            f"ENDPOINT '{endpoints.s3_endpoint.removeprefix('http://')}', URL_STYLE 'path', USE_SSL false, "
            f"REGION '{endpoints.s3_region}')"
        )
        connection.execute(
            f"CREATE SECRET lake_secret (TYPE iceberg, CLIENT_ID '{endpoints.access_key}', "
            f"CLIENT_SECRET '{endpoints.secret_key}', OAUTH2_SERVER_URI '{endpoints.catalog_uri}/v1/oauth/tokens')"
        )
        connection.execute(
            f"ATTACH '{endpoints.warehouse}' AS lake "
            f"(TYPE iceberg, ENDPOINT '{endpoints.catalog_uri}', SECRET lake_secret, ACCESS_DELEGATION_MODE 'none')"
        )
        yield connection


def extension(name: str) -> Path:
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    assert spec is not None
    assert spec.submodule_search_locations
    return next(Path(next(iter(spec.submodule_search_locations))).rglob(f"{name}.duckdb_extension"))


def canonical(rows: list[dict[str, Any]]) -> list[str]:
    for row in rows:
        for part in ("key", "val"):
            if row[part] and row[part].get("__err__"):
                # pyiceberg 0.12 shows a null list of structs as an empty one, as here if nothing could be decoded.
                row[part] = {name: None if value == [] else value for name, value in row[part].items()}
    ordered = sorted(rows, key=lambda row: (row["kafka"]["partition"], row["kafka"]["offset"]))
    return [json.dumps(plain(row), sort_keys=True) for row in ordered]


def plain(value: Any) -> Any:  # noqa: PLR0911 - one return for each kind of value
    match value:
        case dict() if set(value) == {"key", "value"} and isinstance(value["key"], list):
            return [[plain(key), plain(item)] for key, item in zip(value["key"], value["value"], strict=True)]
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case tuple():
            return [plain(item) for item in value]
        case list():
            return [plain(item) for item in value]
        case bytes() | bytearray():
            return bytes(value).hex()
        case datetime():
            return value.timestamp()
        case date():
            return value.isoformat()
        case float():
            return value.hex()
        case Decimal():
            return str(value)
        case _:
            return value
