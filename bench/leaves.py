"""Cost of each column as Parquet, by the archiver's column writer and pyarrow's.

A quarter of the orders of bench/data.py, by the archive job's plans, in memory: all columns, then each alone, in
pyarrow below its structs and lists. CPU seconds per million records, medians for the whole, least for columns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from stored_size import one_partition, row_mapping, translated

from archiver.storage.parquet.columns.column_encoder import ChunkWriter, Column, Rows
from archiver.storage.parquet.columns.file_writer import FileWriter, planned_columns
from archiver.storage.parquet.columns.plan import ColumnPlan, Encoding
from archiver.storage.parquet.encodings import SAMPLE, choose_encodings
from archiver.storage.parquet.leaves import leaves_of
from archiver.storage.parquet.metrics import measured_modes
from archiver.storage.parquet.writer import column_plans
from archiver.storage.segment import SegmentLayout

LEVEL = 3
ARROWS = {Encoding.DIFFERENCES: "DELTA_BINARY_PACKED", Encoding.SHARED_STARTS: "DELTA_BYTE_ARRAY"}


def child(array: pa.Array, steps: Sequence[str]) -> tuple[pa.Array, int]:
    if pa.types.is_map(array.type):
        return (array.keys if steps[1] == "key" else array.items), 2
    if pa.types.is_list(array.type):
        return array.values, 2
    return array.field(steps[0]), 1


def alone(field: pa.Field, array: pa.Array, steps: Sequence[str]) -> tuple[pa.Field, pa.Array]:
    if not steps or pa.types.is_map(array.type):
        return field, array
    below, taken = child(array, steps)
    if pa.types.is_list(array.type):
        field_below, below = alone(array.type.value_field, below, steps[taken:])
        made = pa.ListArray.from_arrays(array.offsets, below, type=pa.list_(field_below))
    else:
        inner = array.type.field(array.type.get_field_index(steps[0]))
        field_below, below = alone(inner, below, steps[taken:])
        nulls = array.is_null() if array.null_count else None
        made = pa.StructArray.from_arrays([below], fields=[field_below], mask=nulls)
    return pa.field(field.name, made.type, field.nullable), made


def options_of(plans: Sequence[ColumnPlan], name: str | None = None) -> dict[str, Any]:
    named = {name or plan.leaf.path: plan for plan in plans}
    levels = {path: plan.level for path, plan in named.items() if plan.level is not None}
    special = (Encoding.DIFFERENCES, Encoding.SHARED_STARTS)
    return {
        "version": "2.6",
        "compression": {path: "none" if plan.level is None else "zstd" for path, plan in named.items()},
        "compression_level": levels or None,
        "use_dictionary": [path for path, plan in named.items() if plan.encoding is Encoding.DICTIONARY],
        "column_encoding": {path: ARROWS[plan.encoding] for path, plan in named.items() if plan.encoding in special},
        "data_page_size": 768 << 10,
        "write_batch_size": 2048,
        "write_statistics": [path for path, plan in named.items() if plan.has_statistics],
        "write_page_index": True,
        "write_page_checksum": True,
        "store_schema": False,
    }


def by_arrow(table: pa.Table, options: dict[str, Any]) -> int:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table, row_group_size=1 << 20)
    return int(sink.tell())


def by_us(batches: Sequence[pa.RecordBatch], plans: Sequence[ColumnPlan]) -> int:
    sink = pa.BufferOutputStream()
    writer = FileWriter(sink, batches[0].schema, plans)
    writer.write(batches)
    writer.close({})
    return writer.size


def seconds(*works: Callable[[], object], turns: int) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in works]
    for _ in range(turns):
        for index, work in enumerate(works):
            started = time.process_time()
            work()
            times[index].append(time.process_time() - started)
    return times


def costs(batches: Sequence[pa.RecordBatch], plan: ColumnPlan, column: Column, turns: int) -> tuple[float, float]:
    top, *steps = plan.leaf.path.split(".")
    whole = pa.Table.from_batches(batches).combine_chunks()
    field, array = alone(whole.schema.field(top), whole.column(top).chunk(0), steps)
    table = pa.table([array], schema=pa.schema([field]))
    options = options_of([plan], plan.leaf.path)
    ours, arrows = seconds(
        lambda: ChunkWriter(pa.BufferOutputStream(), 0).write(column, Rows(batches)),
        lambda: by_arrow(table, options),
        turns=turns,
    )
    columns = 2 if ".key_value." in plan.leaf.path else 1  # Parquet has no keys without values
    return min(ours) * 1e6 / whole.num_rows, min(arrows) * 1e6 / whole.num_rows / columns


def main() -> None:
    parser = argparse.ArgumentParser(description="Columns written alone")
    parser.add_argument("--records", type=int, default=400_000, help="orders, of which a quarter is in the partition")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--top", type=int, default=12, help="how many columns to list")
    given = parser.parse_args()
    row = row_mapping()
    batches = list(translated(one_partition(given.records), row))
    rows = pa.Table.from_batches(batches)
    layout = SegmentLayout.of_mapping(row, {})
    leaves = leaves_of(layout.schema)
    encodings = choose_encodings(leaves, rows.slice(0, SAMPLE).combine_chunks().to_batches()[0])
    counted = frozenset(leaf for leaf, mode in measured_modes(leaves, layout.table_properties).items() if mode.counts)
    plans = column_plans(leaves, encodings, LEVEL, counted=counted)
    scale = 1e6 / rows.num_rows
    options = options_of(plans)
    ours, arrows = seconds(lambda: by_us(batches, plans), lambda: by_arrow(rows, options), turns=given.turns)
    sizes = by_us(batches, plans) / rows.num_rows, by_arrow(rows, options) / rows.num_rows
    columns = planned_columns(rows.schema, plans)
    figures = {plan: costs(batches, plan, column, given.turns) for plan, column in zip(plans, columns, strict=True)}

    table = Table(title="CPU seconds for a million records")
    for heading in ("column", "ours", "pyarrow's"):
        table.add_column(heading, justify="left" if heading == "column" else "right")
    for plan in sorted(plans, key=lambda plan: -figures[plan][0])[: given.top]:
        table.add_row(plan.leaf.path, *(f"{value:.3f}" for value in figures[plan]))
    groups = {
        "all below lists and maps": [plan for plan in plans if plan.leaf.is_repeated],
        "all with one value": [plan for plan in plans if plan.leaf.index in encodings.constant],
        "all, each alone": list(plans),
    }
    for name, members in groups.items():
        table.add_row(name, *(f"{sum(figures[plan][side] for plan in members):.3f}" for side in (0, 1)))
    spread = [f"{scale * statistics.median(value):.3f} ({scale * min(value):.3f})" for value in (ours, arrows)]
    table.add_row("all together, median (least)", *spread)
    table.add_row("bytes a record", *(f"{size:.2f}" for size in sizes))
    Console(width=None if Console().is_terminal else 120).print(table)


if __name__ == "__main__":
    main()
