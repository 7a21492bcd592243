"""Other readers must find the rows of the archiver's Parquet files.

pyarrow in each of its ways; DuckDB, Polars, DataFusion and ClickHouse also with filters.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.storage.shredded_rows import python_values

_IN_ORDER: Final = (
    "SETTINGS max_threads = 1, input_format_parquet_preserve_order = 1, output_format_arrow_string_as_string = 0"
)

INDEX_KEY: Final = b"archiver.index"


def without_index(columns: pa.Schema) -> pa.Schema:
    pairs = {key: text for key, text in (columns.metadata or {}).items() if key != INDEX_KEY}
    return columns.with_metadata(pairs or None)


def judge_reads(ours: bytes, arrows: bytes, tables: Sequence[pa.Table]) -> None:
    expected = [_values(table) for table in tables]
    whole = [column for columns in zip(*expected, strict=True) for column in [[v for value in columns for v in value]]]
    reference = pq.read_table(io.BytesIO(arrows))
    for options in ({}, {"use_threads": False}, {"pre_buffer": False}, {"read_dictionary": _dictionaries(ours)}):
        read = pq.read_table(io.BytesIO(ours), page_checksum_verification=True, **options)
        if not options:
            assert without_index(read.schema).equals(without_index(reference.schema), check_metadata=True)
        read.validate(full=True)
        assert not tables or _values(_decoded(read, reference.schema)) == whole, options
    with pq.ParquetFile(io.BytesIO(ours), page_checksum_verification=True) as file:
        for number, rows in enumerate(expected):
            assert _values(file.read_row_group(number)) == rows, number
        batches = list(file.iter_batches(batch_size=97))
        assert not batches or _values(pa.Table.from_batches(batches)) == whole
        for leaf in range(file.metadata.num_columns):
            path = file.metadata.schema.column(leaf).path
            with pq.ParquetFile(io.BytesIO(arrows)) as second:
                assert _values(file.read(columns=[path])) == _values(second.read(columns=[path])), path


def _values(table: pa.Table) -> list[list[Any]]:
    return [[value for chunk in column.chunks for value in python_values(chunk)] for column in table.columns]


def _dictionaries(data: bytes) -> list[str]:
    """Arrow makes invalid arrays of nested dictionaries."""
    footer = pq.read_metadata(io.BytesIO(data))
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    chunks = [[group.column(at) for group in groups] for at in range(footer.num_columns)]
    return [
        footer.schema.column(at).path
        for at, value in enumerate(chunks)
        if footer.schema.column(at).path == footer.schema.column(at).name
        and all(chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page for chunk in value)
    ]


def _decoded(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        column.cast(field.type) if pa.types.is_dictionary(column.type) else column
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=schema.names)


def by_duckdb(path: Path) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table()


def by_polars(path: Path) -> pa.Table:
    import polars as pl

    return pl.read_parquet(path, glob=False).to_arrow(compat_level=pl.CompatLevel.oldest())


def by_datafusion(path: Path) -> pa.Table:
    return _context(path).sql("SELECT * FROM rows").to_arrow_table()


def by_clickhouse(path: Path) -> pa.Table:
    result: pa.Table = _clickhouse(f"SELECT * FROM file('{path}', Parquet) {_IN_ORDER}", "ArrowTable")
    return result


def _clickhouse(query: str, form: str) -> Any:
    import chdb

    return chdb.query(query, form)  # type: ignore[no-untyped-call]


ENGINES: Final[Mapping[str, Callable[[Path], pa.Table]]] = {
    "duckdb": by_duckdb,
    "polars": by_polars,
    "datafusion": by_datafusion,
    "chdb": by_clickhouse,
}
"""By the modules that they need: all but DuckDB are only installed by `make interop`."""


def is_installed(engine: str) -> bool:
    return importlib.util.find_spec(engine) is not None


def judge_engine(engine: str, ours: Path, arrows: Path) -> None:
    result, expected = (_values(ENGINES[engine](path)) for path in (ours, arrows))
    assert result == expected, engine


def _outcome(count: Callable[[str], int], condition: str) -> int | str:
    try:
        return count(condition)
    except Exception as error:  # noqa: BLE001 - each engine has its own
        return type(error).__name__
    except BaseException as error:  # Rust's panics are no Exceptions
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return type(error).__name__


def conditions(table: pa.Table, *, step: int) -> Iterator[str]:
    for name, column in zip(table.column_names, table.columns, strict=True):
        for position in range(0, len(column), step):
            if (literal := _literal(column.type, column[position])) is not None:
                for sign in ("=", "<", ">"):
                    yield f'"{name}" {sign} {literal}'


def _literal(kind: pa.DataType, value: pa.Scalar) -> str | None:
    if not value.is_valid or not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date(kind)):
        return None
    if pa.types.is_string(kind):
        text = value.as_py().replace("'", "''")
        return f"'{text}'" if "\0" not in text else None
    return str(value.as_py()) if pa.types.is_integer(kind) else f"DATE '{value.as_py()}'"


def judge_filters(engine: str, ours: Path, arrows: Path, table: pa.Table, *, step: int) -> int:
    texts = list(conditions(table, step=step))
    result, expected = (COUNTS[engine](path, texts) for path in (ours, arrows))
    for text, value, second in zip(texts, result, expected, strict=True):
        assert value == second, (engine, text, value, second)
    return sum(isinstance(item, int) for item in result)


def _duckdb_counts(path: Path, conditions: Sequence[str]) -> list[int | str]:
    with duckdb.connect() as connection:

        def count(condition: str) -> int:
            query = f"SELECT count(*) FROM read_parquet('{path}') WHERE {condition}"
            return int(connection.execute(query).fetchall()[0][0])

        return [_outcome(count, condition) for condition in conditions]


def _datafusion_counts(path: Path, conditions: Sequence[str]) -> list[int | str]:
    context = _context(path)

    def count(condition: str) -> int:
        table = context.sql(f"SELECT count(*) AS n FROM rows WHERE {condition}").to_arrow_table()
        return int(table.column("n")[0].as_py())

    return [_outcome(count, condition) for condition in conditions]


def _clickhouse_counts(path: Path, conditions: Sequence[str]) -> list[int | str]:
    def count(condition: str) -> int:
        return int(str(_clickhouse(f"SELECT count(*) FROM file('{path}', Parquet) WHERE {condition}", "CSV")))

    return [_outcome(count, condition) for condition in conditions]


def _context(path: Path) -> Any:
    import datafusion

    config = datafusion.SessionConfig({"datafusion.execution.parquet.pushdown_filters": "true"})
    context = datafusion.SessionContext(config)
    context.register_parquet("rows", str(path))
    return context


COUNTS: Final[Mapping[str, Callable[[Path, Sequence[str]], list[int | str]]]] = {
    "duckdb": _duckdb_counts,
    "datafusion": _datafusion_counts,
    "chdb": _clickhouse_counts,
}
"""Engines that filter by page indexes or bloom filters."""
