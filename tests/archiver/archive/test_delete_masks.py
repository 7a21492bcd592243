"""Masks of deleted rows."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.archive.deletes import Deletes, EqualityKeys

NUMBER, NAME = 7, 8
NUMBERS = st.none() | st.integers(0, 2)
NAMES = st.none() | st.sampled_from(["a", "b", ""])


def decimals(texts: list[str], precision: int) -> pa.Array:
    return pa.array([Decimal(text) for text in texts], pa.decimal128(precision, 2))


ROWS = st.lists(st.tuples(NUMBERS, NAMES), max_size=12)


def batch(rows: list[tuple[int | None, str | None]]) -> pa.RecordBatch:
    number = pa.field("n", pa.int32(), metadata={"PARQUET:field_id": str(NUMBER)})
    name = pa.field("renamed", pa.string(), metadata={"PARQUET:field_id": str(NAME)})
    struct = pa.StructArray.from_arrays([pa.array([row[0] for row in rows], pa.int32())], fields=[number])
    columns = [struct, pa.array([row[1] for row in rows], pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([pa.field("s", struct.type), name]))


def keys(rows: list[tuple[int | None, str | None]]) -> EqualityKeys:
    """The delete file has the wider type, as after a type promotion."""
    numbers, names = pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows], pa.string())
    return EqualityKeys((NUMBER, NAME), (numbers, names))


@given(ROWS, ROWS.filter(bool))
def test_a_row_is_deleted_when_every_column_equals_one_key_s(
    rows: list[tuple[int | None, str | None]], deleted: list[tuple[int | None, str | None]]
) -> None:
    assert keys(deleted).matches(batch(rows)).tolist() == [row in deleted for row in rows]


@pytest.mark.parametrize(
    ("rows", "deleted", "matches"),
    [
        (pa.array([0.1, float(np.float32(0.1)), 2.0]), pa.array([0.1, 2.0], pa.float32()), [False, True, True]),
        (pa.array([0.1, 2.0], pa.float32()), pa.array([0.1, 2.0]), [False, True]),
        (pa.array([5, 2**40, -(2**31) - 1, None]), pa.array([5], pa.int32()), [True, False, False, False]),
        (pa.array([5, None], pa.int32()), pa.array([2**40, 5, None]), [True, True]),
        (decimals(["1.50", "123456.25"], 20), decimals(["1.50"], 5), [True, False]),
        (decimals(["1.50", "2.25"], 5), decimals(["123456.25", "2.25"], 20), [False, True]),
    ],
    ids=["double and float", "float and double", "long and int", "int and long", "longer decimals", "shorter decimals"],
)
def test_equality_keys_compare_in_the_wider_type(rows: pa.Array, deleted: pa.Array, matches: list[bool]) -> None:
    field = pa.field("n", rows.type, metadata={"PARQUET:field_id": str(NUMBER)})
    batch = pa.RecordBatch.from_arrays([rows], schema=pa.schema([field]))
    assert EqualityKeys((NUMBER,), (deleted,)).matches(batch).tolist() == matches


def test_many_columns_do_not_overflow() -> None:
    fields = [pa.field(f"c{value}", pa.int64(), metadata={"PARQUET:field_id": str(value)}) for value in range(40)]
    values = [pa.array(range(value, value + 100)) for value in range(40)]
    rows = pa.RecordBatch.from_arrays(values, schema=pa.schema(fields))
    half = EqualityKeys(tuple(range(40)), tuple(value[::2] for value in values))
    assert half.matches(rows).tolist() == [row % 2 == 0 for row in range(100)]


@given(st.sets(st.integers(0, 40)), st.lists(st.integers(0, 12), max_size=5))
def test_positions_count_from_the_file_s_first_row(positions: set[int], sizes: list[int]) -> None:
    deletes = Deletes(np.array(sorted(positions), np.int64))
    kept: list[bool] = []
    for size in sizes:
        rows = pa.RecordBatch.from_arrays([pa.nulls(size)], names=["x"])
        kept += deletes.survivors(rows, len(kept)).tolist()
    assert kept == [row not in positions for row in range(sum(sizes))]


def test_positions_and_keys_both_delete() -> None:
    deletes = Deletes(np.array([0], np.int64), (keys([(1, "a")]), keys([(None, None)])))
    rows = batch([(2, "b"), (1, "a"), (None, None), (2, "b")])
    assert deletes.survivors(rows, 0).tolist() == [False, False, False, True]
    assert deletes.field_ids == {NUMBER, NAME}
