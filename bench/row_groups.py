"""Cost of a row group's number of rows for scans, lookups and writes.

Two million flights (`tables.flights`) in local files, queried by DuckDB, on one thread, and Polars. CPU seconds,
medians without the first turn.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import duckdb
import polars as pl
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from tables.flights import field, group_of, months

from archiver.demo.settings import deploy_schema
from archiver.files.translate import Translator
from archiver.schemas.protobuf.schema_files import compile_proto
from archiver.storage.parquet import ParquetFormat, writer
from archiver.storage.segment import SegmentLayout
from archiver.storage.spool_file import SpoolFile
from schema_mapping.field_ids import LedgerState, assign
from schema_mapping.row import RowMapping

ROWS = (32 << 10, writer.GROUP_ROWS, 512 << 10, 1 << 20)
DUCKDB = {
    "DuckDB: mean over all": "select val.carrier, avg(val.arrival.delay_minutes) from '{}' group by 1",
    "DuckDB: far flights": "select count(*), max(val.air_minutes) from '{}' where val.miles > 2500",
    "DuckDB: one offset": "select val.number from '{}' where kafka.\"offset\" = 1000017",
}


def flights(copies: int, folder: Path) -> tuple[RowMapping, list[pa.RecordBatch]]:
    message = deploy_schema(folder, 2)
    row = assign(LedgerState(), value=compile_proto(folder / "flight.proto", "flights.Flight")).row
    translator = Translator(row, topic="flights", partition=0, on_parse_error="halt")
    groups = (group_of(records) for _, records in months(copies, message))
    return row, [translated.rows for group in groups for translated in translator.translate(group)]


def written(row: RowMapping, batches: list[pa.RecordBatch], path: Path, group_rows: int) -> float:
    writer.GROUP_ROWS = group_rows
    started = time.process_time()
    made = ParquetFormat().start(SpoolFile.create(path), SegmentLayout.of_mapping(row, {}))
    for batch in batches:
        made.write(batch)
    made.close(origin=None, path=path.name)
    return time.process_time() - started


def medians(paths: dict[int, Path], turns: int, ask: Callable[[Path], Any]) -> dict[int, float]:
    seconds: dict[int, list[float]] = {rows: [] for rows in paths}
    for turn in range(turns + 1):
        for rows, path in paths.items():
            started = time.process_time()
            ask(path)
            if turn:
                seconds[rows].append(time.process_time() - started)
    return {rows: statistics.median(times) for rows, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Row groups")
    parser.add_argument("--copies", type=int, default=6)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    table = Table(title="rows in a row group")
    for heading in ("", *(f"{rows:,}" for rows in ROWS)):
        table.add_column(heading)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(config={"threads": 1}) as connection:
        row, batches = flights(options.copies, Path(folder))
        paths = {rows: Path(folder) / f"{rows}.parquet" for rows in ROWS}
        wrote = {rows: written(row, batches, path, rows) for rows, path in paths.items()}
        table.add_row("MB", *(f"{path.stat().st_size / 1e6:.1f}" for path in paths.values()))
        table.add_row("writing, s", *(f"{value:.2f}" for value in wrote.values()))
        for name, query in DUCKDB.items():
            by_size = medians(
                paths, options.turns, lambda path, query=query: connection.sql(query.format(path)).fetchall()
            )
            table.add_row(f"{name}, ms", *(f"{value * 1000:.0f}" for value in by_size.values()))
        mean = field("val.arrival.delay_minutes").mean()
        by_size = medians(
            paths, options.turns, lambda path: pl.scan_parquet(path).group_by(field("val.carrier")).agg(mean).collect()
        )
        table.add_row("Polars: mean over all, ms", *(f"{value * 1000:.0f}" for value in by_size.values()))
    Console(width=None if Console().is_terminal else 120).print(table)


if __name__ == "__main__":
    main()
