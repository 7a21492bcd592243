"""Encodings suit the columns."""

from __future__ import annotations

import io
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.storage.parquet.columns.file_writer import FileWriter
from archiver.storage.parquet.columns.plan import Encoding
from archiver.storage.parquet.encodings import ENOUGH, choose_encodings
from archiver.storage.parquet.leaves import leaves_of
from archiver.storage.parquet.writer import column_plans

COUNT = 3 * ENOUGH
DRAW = random.Random(1)
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS: dict[str, tuple[pa.DataType, list[Any], Encoding]] = {
    "few": (pa.int64(), [DRAW.randrange(50) for _ in range(COUNT)], Encoding.DICTIONARY),
    "few_texts": (pa.string(), [DRAW.choice(("web", "app")) for _ in range(COUNT)], Encoding.DICTIONARY),
    "rising": (pa.int64(), [10**12 + 37 * number for number in range(COUNT)], Encoding.DIFFERENCES),
    "wild": (pa.int64(), [DRAW.randrange(-(1 << 63), 1 << 63) for _ in range(COUNT)], Encoding.DIFFERENCES),
    "narrow": (pa.int32(), [DRAW.randrange(-(1 << 31), 1 << 31) for _ in range(COUNT)], Encoding.DIFFERENCES),
    "moments": (
        pa.timestamp("us", "UTC"),
        [MOMENT + timedelta(microseconds=DRAW.randrange(10**12)) for _ in range(COUNT)],
        Encoding.DIFFERENCES,
    ),
    "ratios": (pa.float64(), [DRAW.random() for _ in range(COUNT)], Encoding.PLAIN),
    "texts": (pa.string(), [f"shops/1/orders/{DRAW.randrange(10**9)}-ü" for _ in range(COUNT)], Encoding.SHARED_STARTS),
    "octets": (
        pa.binary(),
        [b"\xff" * 30 + DRAW.randbytes(DRAW.randrange(2, 30)) if number % 3 else None for number in range(COUNT)],
        Encoding.SHARED_STARTS,
    ),
    "unlike": (pa.string(), [f"{DRAW.randrange(10**9):09}, as before" for _ in range(COUNT)], Encoding.PLAIN),
    "long": (pa.binary(), [DRAW.randbytes(100) for _ in range(COUNT)], Encoding.PLAIN),
    "mostly_null": (
        pa.int64(),
        [number if number % 100 == 0 else None for number in range(COUNT)],
        Encoding.DICTIONARY,
    ),
    "same": (pa.int64(), [7] * COUNT, Encoding.DICTIONARY),
    "none": (pa.string(), [None] * COUNT, Encoding.DICTIONARY),
    "lists": (pa.list_(pa.int64()), [[number, -number][: number % 3] for number in range(COUNT)], Encoding.DIFFERENCES),
}


def table() -> pa.RecordBatch:
    arrays = [pa.array(values, kind) for kind, values, _ in COLUMNS.values()]
    return pa.record_batch({"val": pa.StructArray.from_arrays(arrays, list(COLUMNS))})


def written(*batches: pa.RecordBatch) -> bytes:
    leaves = leaves_of(batches[0].schema)
    sink = pa.BufferOutputStream()
    writer = FileWriter(sink, batches[0].schema, column_plans(leaves, choose_encodings(leaves, batches[0]), 3))
    for batch in batches:
        writer.write([batch])
    writer.close({})
    data: bytes = sink.getvalue().to_pybytes()
    return data


def test_choices() -> None:
    rows = table()
    leaves = leaves_of(rows.schema)
    chosen = choose_encodings(leaves, rows)
    choices = {leaf.name.split(".")[1]: chosen.chosen[leaf.index] for leaf in leaves}
    assert choices == {name: expected for name, (_, _, expected) in COLUMNS.items()}
    assert {leaf.path for leaf in leaves if leaf.index in chosen.long} == {"val.long"}
    assert {leaf.path for leaf in leaves if leaf.index in chosen.constant} == {"val.same"}


def test_what_is_null_at_first_and_long_later_is_compressed() -> None:
    kind = pa.struct([("text", pa.binary())])
    first = pa.record_batch({"val": pa.array([{"text": None}] * COUNT, kind)})
    later = pa.record_batch(
        {"val": pa.array([{"text": b"an order that its schema no longer fits" * 50}] * COUNT, kind)}
    )
    assert len(written(first, later)) < later.nbytes / 100


def test_pyarrow_and_duckdb_read_what_was_written(tmp_path: Any) -> None:
    rows = table()
    data = written(rows)
    assert pq.read_table(io.BytesIO(data)).to_pylist() == rows.to_pylist()
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    with duckdb.connect() as connection:
        by_duckdb = connection.sql(f"SELECT val FROM '{path}'").to_arrow_table()
    assert by_duckdb.to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("count", [0, 1, ENOUGH - 1])
def test_few_rows_say_nothing(count: int) -> None:
    rows = table().slice(5, count)
    leaves = leaves_of(rows.schema)
    assert set(choose_encodings(leaves, rows).chosen.values()) <= {Encoding.DICTIONARY}
    assert pq.read_table(io.BytesIO(written(rows))).to_pylist() == rows.to_pylist()


def test_the_order_of_leaves_is_that_of_the_schema() -> None:
    unique = list(range(COUNT))
    same = [1] * COUNT
    entries = pa.MapArray.from_arrays(list(range(COUNT + 1)), pa.array(unique), pa.array(same))
    pairs = pa.array([[{"a": 1, "b": number}] for number in unique])
    rows = pa.record_batch({"val": pa.StructArray.from_arrays([entries, pairs, pa.array(unique)], ["m", "p", "last"])})
    for part in (rows, rows.slice(7)):
        leaves = leaves_of(rows.schema)
        chosen = choose_encodings(leaves, part).chosen
        assert {leaf.path for leaf in leaves if chosen[leaf.index] is Encoding.DIFFERENCES} == {
            "val.m.key_value.key",
            "val.p.list.element.b",
            "val.last",
        }


def test_top_level_columns_keep_what_vectorized_readers_know() -> None:
    rows = pa.record_batch({"top": pa.array(range(COUNT)), "repeating": pa.array([1] * COUNT)})
    chosen = choose_encodings(leaves_of(rows.schema), rows)
    assert chosen.chosen == {0: Encoding.PLAIN, 1: Encoding.DICTIONARY}


def test_plain_files_have_only_encodings_that_every_reader_knows() -> None:
    rows = table()
    leaves = leaves_of(rows.schema)
    chosen = choose_encodings(leaves, rows, is_plain=True)
    assert set(chosen.chosen.values()) == {Encoding.PLAIN, Encoding.DICTIONARY}
    by_values = choose_encodings(leaves, rows).chosen
    assert {leaf for leaf, kind in by_values.items() if kind is Encoding.DICTIONARY} == {
        leaf for leaf, kind in chosen.chosen.items() if kind is Encoding.DICTIONARY
    }
    sink = pa.BufferOutputStream()
    writer = FileWriter(sink, rows.schema, column_plans(leaves, chosen, 3))
    writer.write([rows])
    writer.close({})
    data = sink.getvalue().to_pybytes()
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    names = {name for column in range(group.num_columns) for name in group.column(column).encodings}
    assert names <= {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY"}
    assert pq.read_table(io.BytesIO(data)).to_pylist() == rows.to_pylist()
