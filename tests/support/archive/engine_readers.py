"""Rows of a table by each engine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from pyiceberg.table import Table

from archiver.engine.spark import SparkEngine
from tests.support.archive.three_engines import duckdb_on
from tests.support.servers.clickhouse import Clickhouse
from tests.support.servers.stack import Stack

if TYPE_CHECKING:
    from tests.support.servers.trino import Trino

Row = dict[str, Any]


class Reader(Protocol):
    def column(self, table: str, name: str) -> list[Row]: ...

    def field(self, table: str, path: Sequence[str], from_offset: int) -> list[tuple[int, int, Any]]: ...


class PyicebergReader:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def column(self, table: str, name: str) -> list[Row]:
        return list(self._table(table).scan(selected_fields=("kafka", name)).to_arrow().to_pylist())

    def field(self, table: str, path: Sequence[str], from_offset: int) -> list[tuple[int, int, Any]]:
        expected = ("kafka.partition", "kafka.offset", ".".join(path))
        scan = self._table(table).scan(row_filter=f"kafka.offset >= {from_offset}", selected_fields=expected)
        rows = scan.to_arrow().to_pylist()
        return [(row["kafka"]["partition"], row["kafka"]["offset"], _down(row, path)) for row in rows]

    def _table(self, table: str) -> Table:
        return self._stack.catalog().load_table(table)


class SparkReader:
    def __init__(self, engine: SparkEngine) -> None:
        self._session = engine.session

    def column(self, table: str, name: str) -> list[Row]:
        return list(self._session.table(f"lake.{table}").select("kafka", name).toArrow().to_pylist())

    def field(self, table: str, path: Sequence[str], from_offset: int) -> list[tuple[int, int, Any]]:
        return _tuples(self._session.sql(_query(f"lake.{table}", ".".join(path), from_offset)).toArrow())


class DuckdbReader:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def column(self, table: str, name: str) -> list[Row]:
        with duckdb_on(self._stack) as connection:
            return list(connection.sql(f"SELECT kafka, {name} FROM lake.{table}").to_arrow_table().to_pylist())

    def field(self, table: str, path: Sequence[str], from_offset: int) -> list[tuple[int, int, Any]]:
        with duckdb_on(self._stack) as connection:
            return _tuples(connection.sql(_query(f"lake.{table}", ".".join(path), from_offset)).to_arrow_table())


class TrinoReader:
    def __init__(self, trino: Trino) -> None:
        self._trino = trino

    def column(self, table: str, name: str) -> list[Row]:
        return [
            {"kafka": kafka, name: value} for kafka, value in self._trino.rows(f"SELECT kafka, {name} FROM {table}")
        ]

    def field(self, table: str, path: Sequence[str], from_offset: int) -> list[tuple[int, int, Any]]:
        rows = self._trino.rows(_query(table, ".".join(path), from_offset))
        return [(partition, offset, value) for partition, offset, value in rows]


class PolarsReader:
    def __init__(self, stack: Stack) -> None:
        os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")  # else it warns that its own planner isn't there
        self._stack = stack

    def column(self, table: str, name: str) -> list[Row]:
        return list(self.scan(table).select("kafka", name).collect().to_arrow().to_pylist())

    def field(self, table: str, path: Sequence[str], from_offset: int) -> list[tuple[int, int, Any]]:
        import polars as pl

        kafka = pl.col("kafka").struct
        scan = self.scan(table).filter(kafka.field("offset") >= from_offset)
        result = scan.select(kafka.field("partition"), kafka.field("offset"), self.path(path).alias("field"))
        return _tuples(result.collect().to_arrow())

    def path(self, path: Sequence[str]) -> Any:
        import polars as pl

        result = pl.col(path[0])
        for name in path[1:]:
            result = result.struct.field(name)
        return result

    def scan(self, table: str) -> Any:
        import polars as pl

        local = self._stack.endpoints
        store = {
            "aws_endpoint_url": local.s3_endpoint,
            "aws_access_key_id": local.access_key,
            "aws_secret_access_key": local.secret_key,
            "aws_region": local.s3_region,
            "aws_allow_http": "true",
        }
        return pl.scan_iceberg(self._stack.catalog().load_table(table), storage_options=store)


class ClickhouseReader:
    """`whole` reads structs whole before it takes a field."""

    def __init__(self, stack: Stack, clickhouse: Clickhouse, *, whole: bool) -> None:
        self._stack = stack
        self._clickhouse = clickhouse
        self._whole = whole

    def column(self, table: str, name: str) -> list[Row]:
        return list(self._clickhouse.query(f"SELECT kafka, {name} FROM {self.source(table)}").to_pylist())

    def field(self, table: str, path: Sequence[str], from_offset: int) -> list[tuple[int, int, Any]]:
        kafka = "identity(kafka)" if self._whole else "kafka"
        first = f"identity({path[0]})" if self._whole else path[0]
        query = (
            f"SELECT {kafka}.partition AS p, {kafka}.offset AS o, {'.'.join((first, *path[1:]))} AS f "
            f"FROM {self.source(table)} WHERE {kafka}.offset >= {from_offset}"
        )
        return _tuples(self._clickhouse.query(query))

    def source(self, table: str) -> str:
        local = self._stack.endpoints
        position = self._stack.catalog().load_table(table).location().replace("s3://", f"{local.s3_endpoint}/")
        return f"icebergS3('{position}/', '{local.access_key}', '{local.secret_key}')"


class DatafusionReader:
    """By pyiceberg-core, or from rows of pyiceberg."""

    def __init__(self, stack: Stack, *, by_pyiceberg: bool) -> None:
        self._stack = stack
        self._by_pyiceberg = by_pyiceberg

    def column(self, table: str, name: str) -> list[Row]:
        return list(self._query(table, f"SELECT kafka, {name} FROM t").to_pylist())

    def field(self, table: str, path: Sequence[str], from_offset: int) -> list[tuple[int, int, Any]]:
        expected = path[0] + "".join(f"['{name}']" for name in path[1:])
        query = (
            f"SELECT kafka['partition'] AS p, kafka['offset'] AS o, {expected} AS f FROM t "
            f"WHERE kafka['offset'] >= {from_offset}"
        )
        return _tuples(self._query(table, query))

    def _query(self, table: str, query: str) -> pa.Table:
        from datafusion import SessionContext

        context = SessionContext()  # has to live as long as its queries
        loaded = self._stack.catalog().load_table(table)
        if self._by_pyiceberg:
            context.register_record_batches("t", [loaded.scan().to_arrow().to_batches()])
        else:
            context.register_table("t", IcebergProvider(loaded, self._stack.endpoints.s3_properties))
        return context.sql(query).to_arrow_table()


class IcebergProvider:
    """pyiceberg's passes properties that aren't texts, and fails on OAuth2 catalogs."""

    def __init__(self, table: Table, properties: Mapping[str, str]) -> None:
        self._table = table
        self._properties = dict(properties)

    def __datafusion_table_provider__(self, session: Any) -> Any:
        from pyiceberg_core.datafusion import IcebergDataFusionTable

        provider = IcebergDataFusionTable(
            identifier=self._table.name(),
            metadata_location=self._table.metadata_location,
            file_io_properties=self._properties,
        )
        return provider.__datafusion_table_provider__(session)


def _query(table: str, field: str, from_offset: int) -> str:
    position = "kafka.partition AS p, kafka.offset AS o"
    return f"SELECT {position}, {field} AS f FROM {table} WHERE kafka.offset >= {from_offset}"


def _tuples(table: pa.Table) -> list[tuple[int, int, Any]]:
    partitions, offsets, values = (column.to_pylist() for column in table.columns)
    return list(zip(partitions, offsets, values, strict=True))


def _down(row: Row, path: Sequence[str]) -> Any:
    value: Any = row
    for name in path:
        value = None if value is None else value[name]
    return value
