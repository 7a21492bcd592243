"""The dialects by engine."""

from __future__ import annotations

from typing import assert_never

from archiver.views.dialects.athena import Athena
from archiver.views.dialects.clickhouse import ClickHouse
from archiver.views.dialects.dialect import Dialect
from archiver.views.dialects.duckdb import DuckDB
from archiver.views.dialects.spark import Spark
from archiver.views.dialects.trino import Trino
from archiver.views.kinds import Engine


def dialect_of(engine: Engine) -> Dialect:
    """Return the engine's dialect."""
    match engine:
        case Engine.SPARK:
            return Spark()
        case Engine.TRINO:
            return Trino()
        case Engine.DUCKDB:
            return DuckDB()
        case Engine.CLICKHOUSE:
            return ClickHouse()
        case Engine.ATHENA:
            return Athena()
        case _:
            assert_never(engine)
