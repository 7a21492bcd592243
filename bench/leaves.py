"""What each column costs to write as Parquet, and how much of it Arrow spends on levels of lists and maps.

Recipe: `python bench/leaves.py [--records 400000] [--turns 5] [--top 12]`. The orders of bench/data.py, a quarter of
them (one partition), with the options that the archive job's writer chooses. Each column is written alone to memory,
below the structs and lists that hold it. A column below a list is also written flat: the same values with the same
encoding, without lists. The difference is what definition and repetition levels cost. CPU seconds, least of the turns;
they are given for a million records. No servers are needed.
"""

from __future__ import annotations

import argparse
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

from archiver.storage.parquet.encodings import SAMPLE, choose_encodings
from archiver.storage.parquet.leaves import Leaf, leaves_of
from archiver.storage.parquet.metrics import measured_modes
from archiver.storage.parquet.writer import writer_options
from archiver.storage.segment import SegmentLayout

LEVEL = 3
FLAT = "values"


def child(array: pa.Array, steps: Sequence[str]) -> tuple[pa.Array, int]:
    """Return the array below `array` to which the first steps lead, and how many steps that took."""
    if pa.types.is_map(array.type):
        return (array.keys if steps[1] == "key" else array.items), 2
    if pa.types.is_list(array.type):
        return array.values, 2
    return array.field(steps[0]), 1


def flat(array: pa.Array, steps: Sequence[str]) -> pa.Table:
    """Return a leaf's values as a column without lists."""
    while steps:
        array, taken = child(array, steps)
        steps = steps[taken:]
    return pa.table([array], schema=pa.schema([pa.field(FLAT, array.type, array.null_count > 0)]))


def alone(field: pa.Field, array: pa.Array, steps: Sequence[str]) -> tuple[pa.Field, pa.Array]:
    """Return a column that holds one leaf only. A map stays whole: Parquet has no keys without values."""
    if not steps or pa.types.is_map(array.type):
        return field, array
    below, taken = child(array, steps)
    if pa.types.is_list(array.type):
        field_below, below = alone(array.type.value_field, below, steps[taken:])
        made = pa.ListArray.from_arrays(array.offsets, below, type=pa.list_(field_below))
    else:
        found = array.type.field(array.type.get_field_index(steps[0]))
        field_below, below = alone(found, below, steps[taken:])
        nulls = array.is_null() if array.null_count else None
        made = pa.StructArray.from_arrays([below], fields=[field_below], mask=nulls)
    return pa.field(field.name, made.type, field.nullable), made


def options_of(leaf: str, options: dict[str, Any], name: str) -> dict[str, Any]:
    """The options of one column, which is called `name`. A map has two columns: both get them."""
    codec, encoding = options["compression"][leaf], options["column_encoding"].get(leaf)
    return {
        **options,
        "compression": codec,
        "compression_level": options["compression_level"][leaf] if codec != "none" else None,
        "use_dictionary": leaf in options["use_dictionary"],
        "column_encoding": {name: encoding} if encoding else None,
        "write_statistics": leaf in options["write_statistics"],
        "sorting_columns": None,
    }


def seconds(table: pa.Table, options: dict[str, Any], turns: int) -> float:
    """CPU seconds to write the table to memory, for a million of its rows."""

    def write() -> None:
        with pq.ParquetWriter(pa.BufferOutputStream(), table.schema, **options) as writer:
            writer.write_table(table, row_group_size=1 << 20)

    return least(write, turns)


def least(work: Callable[[], None], turns: int) -> float:
    """CPU seconds of the quickest turn."""
    found = []
    for _ in range(turns):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def costs(rows: pa.Table, leaf: Leaf, options: dict[str, Any], turns: int) -> tuple[float, float]:
    """CPU seconds of a column, and of its values without lists, for a million records."""
    top, *steps = leaf.path.split(".")
    column = rows.column(top).chunk(0)
    field, array = alone(rows.schema.field(top), column, steps)
    table = pa.table([array], schema=pa.schema([field]))
    scale = 1e6 / rows.num_rows / (2 if ".key_value." in leaf.path else 1)
    whole = scale * seconds(table, options_of(leaf.path, options, leaf.path), turns)
    if not leaf.is_repeated:
        return whole, whole
    return whole, 1e6 / rows.num_rows * seconds(flat(column, steps), options_of(leaf.path, options, FLAT), turns)


def main() -> None:
    """Write the columns and print a table."""
    parser = argparse.ArgumentParser(description="Columns written alone")
    parser.add_argument("--records", type=int, default=400_000, help="orders, of which a quarter is in the partition")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--top", type=int, default=12, help="how many columns to list")
    given = parser.parse_args()
    row = row_mapping()
    rows = pa.Table.from_batches(translated(one_partition(given.records), row)).combine_chunks()
    layout = SegmentLayout.of(row, {})
    leaves = leaves_of(layout.schema)
    encodings = choose_encodings(leaves, rows.slice(0, SAMPLE).combine_chunks().to_batches()[0])
    counted = frozenset(one for one, mode in measured_modes(leaves, layout.table_properties).items() if mode.counts)
    options = writer_options(leaves, encodings, LEVEL, is_sorted=True, counted=counted)
    whole = seconds(rows, options, given.turns) * 1e6 / rows.num_rows
    found = {leaf: costs(rows, leaf, options, given.turns) for leaf in leaves}

    table = Table(title=f"CPU seconds for a million records; all columns together: {whole:.2f}")
    for heading in ("column", "alone", "its values, flat"):
        table.add_column(heading, justify="left" if heading == "column" else "right")
    ranked = sorted(found, key=lambda leaf: -found[leaf][0])
    for leaf in ranked[: given.top]:
        table.add_row(leaf.path, *(f"{each:.3f}" for each in found[leaf]))
    groups = {
        "all below lists and maps": [leaf for leaf in leaves if leaf.is_repeated],
        "all with one value": [leaf for leaf in leaves if leaf.path in encodings.constant],
        "all": list(leaves),
    }
    for name, members in groups.items():
        table.add_row(name, *(f"{sum(found[leaf][side] for leaf in members):.3f}" for side in (0, 1)))
    Console(width=None if Console().is_terminal else 120).print(table)


if __name__ == "__main__":
    main()
