"""The dialects by engine."""

from __future__ import annotations

from typing import assert_never

from archiver.views.dialects.athena import Athena
from archiver.views.dialects.clickhouse import ClickHouse
from archiver.views.dialects.dialect import Dialect
from archiver.views.dialects.duckdb import DuckDB
from archiver.views.dialects.spark import Spark
from archiver.views.dialects.trino import Trino
from archiver.views.kinds import QueryEngine


def dialect_of(engine: QueryEngine) -> Dialect:
    """Return the engine's dialect."""
    match engine:
        case QueryEngine.SPARK:
            return Spark()
        case QueryEngine.TRINO:
            return Trino()
        case QueryEngine.DUCKDB:
            return DuckDB()
        case QueryEngine.CLICKHOUSE:
            return ClickHouse()
        case QueryEngine.ATHENA:
            return Athena()
        case _:
            assert_never(engine)
