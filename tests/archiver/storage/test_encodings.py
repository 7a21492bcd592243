"""Columns get encodings that suit their values, and other readers read all of them."""

from __future__ import annotations

import io
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.storage.parquet.encodings import ENOUGH, choose_encodings
from archiver.storage.parquet.leaves import leaves_of
from archiver.storage.parquet.writer import writer_options

COUNT = 3 * ENOUGH
DRAW = random.Random(1)
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS: dict[str, tuple[pa.DataType, list[Any], str]] = {
    "few": (pa.int64(), [DRAW.randrange(50) for _ in range(COUNT)], "dictionary"),
    "few_texts": (pa.string(), [DRAW.choice(("web", "app")) for _ in range(COUNT)], "dictionary"),
    "rising": (pa.int64(), [10**12 + 37 * place for place in range(COUNT)], "DELTA_BINARY_PACKED"),
    "wild": (pa.int64(), [DRAW.randrange(-(1 << 63), 1 << 63) for _ in range(COUNT)], "DELTA_BINARY_PACKED"),
    "narrow": (pa.int32(), [DRAW.randrange(-(1 << 31), 1 << 31) for _ in range(COUNT)], "DELTA_BINARY_PACKED"),
    "moments": (
        pa.timestamp("us", "UTC"),
        [MOMENT + timedelta(microseconds=DRAW.randrange(10**12)) for _ in range(COUNT)],
        "DELTA_BINARY_PACKED",
    ),
    "ratios": (pa.float64(), [DRAW.random() for _ in range(COUNT)], "plain"),
    "texts": (pa.string(), [f"shops/1/orders/{DRAW.randrange(10**9)}-ü" for _ in range(COUNT)], "DELTA_BYTE_ARRAY"),
    "octets": (
        pa.binary(),
        [b"\xff" * 30 + DRAW.randbytes(DRAW.randrange(2, 30)) if place % 3 else None for place in range(COUNT)],
        "DELTA_BYTE_ARRAY",
    ),
    "unlike": (pa.string(), [f"{DRAW.randrange(10**9):09}, as before" for _ in range(COUNT)], "plain"),
    "long": (pa.binary(), [DRAW.randbytes(100) for _ in range(COUNT)], "plain"),
    "mostly_null": (pa.int64(), [place if place % 100 == 0 else None for place in range(COUNT)], "dictionary"),
    "same": (pa.int64(), [7] * COUNT, "dictionary"),
    "none": (pa.string(), [None] * COUNT, "dictionary"),
    "lists": (pa.list_(pa.int64()), [[place, -place][: place % 3] for place in range(COUNT)], "DELTA_BINARY_PACKED"),
}


def table() -> pa.RecordBatch:
    arrays = [pa.array(values, kind) for kind, values, _ in COLUMNS.values()]
    return pa.record_batch({"val": pa.StructArray.from_arrays(arrays, list(COLUMNS))})


def written(rows: pa.RecordBatch) -> bytes:
    leaves = leaves_of(rows.schema)
    sink = io.BytesIO()
    options = writer_options(leaves, choose_encodings(leaves, rows), 3, is_sorted=False)
    with pq.ParquetWriter(sink, rows.schema, **options) as writer:
        writer.write_batch(rows)
    return sink.getvalue()


def test_choices() -> None:
    rows = table()
    leaves = leaves_of(rows.schema)
    chosen = choose_encodings(leaves, rows)
    found = {
        leaf.name.split(".")[1]: "dictionary"
        if leaf.path in chosen.dictionary
        else chosen.special.get(leaf.path, "plain")
        for leaf in leaves
    }
    assert found == {name: expected for name, (_, _, expected) in COLUMNS.items()}
    assert chosen.long == {"val.long"}
    assert chosen.constant == {"val.same"}


def test_what_is_null_at_first_and_long_later_is_compressed() -> None:
    kind = pa.struct([("text", pa.binary())])
    first = pa.record_batch({"val": pa.array([{"text": None}] * COUNT, kind)})
    later = pa.record_batch(
        {"val": pa.array([{"text": b"an order that its schema no longer fits" * 50}] * COUNT, kind)}
    )
    leaves = leaves_of(first.schema)
    sink = io.BytesIO()
    options = writer_options(leaves, choose_encodings(leaves, first), 3, is_sorted=False) | {"use_dictionary": False}
    with pq.ParquetWriter(sink, first.schema, **options) as writer:
        writer.write_batch(first)
        writer.write_batch(later)
    assert len(sink.getvalue()) < later.nbytes / 100


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
    assert not choose_encodings(leaves, rows).special
    assert pq.read_table(io.BytesIO(written(rows))).to_pylist() == rows.to_pylist()


def test_the_order_of_leaves_is_that_of_the_schema() -> None:
    unique = list(range(COUNT))
    same = [1] * COUNT
    entries = pa.MapArray.from_arrays(list(range(COUNT + 1)), pa.array(unique), pa.array(same))
    pairs = pa.array([[{"a": 1, "b": place}] for place in unique])
    rows = pa.record_batch({"val": pa.StructArray.from_arrays([entries, pairs, pa.array(unique)], ["m", "p", "last"])})
    for part in (rows, rows.slice(7)):
        assert set(choose_encodings(leaves_of(rows.schema), part).special) == {
            "val.m.key_value.key",
            "val.p.list.element.b",
            "val.last",
        }


def test_top_level_columns_keep_what_vectorized_readers_know() -> None:
    rows = pa.record_batch({"top": pa.array(range(COUNT)), "repeating": pa.array([1] * COUNT)})
    chosen = choose_encodings(leaves_of(rows.schema), rows)
    assert (chosen.dictionary, chosen.special) == (("repeating",), {})
