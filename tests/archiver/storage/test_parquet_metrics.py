"""Bounds of columns, as pyiceberg serializes."""

from __future__ import annotations

import io
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.types import DateType, DecimalType, PrimitiveType, TimestamptzType, TimeType

from archiver.storage.parquet.leaves import leaves_of
from archiver.storage.parquet.metrics import ColumnMetrics, column_metrics, metrics_mode, nan_counts
from schema_mapping.columns.arrow import arrow_field

DECIMAL = DecimalType(20, 0)
UNSIGNED = [Decimal(value) for value in (127, 128, 0, 2**63, 2**64 - 1, 255)]
SIGNED = [Decimal(value) for value in (5, -1, -128, -129, 10**19, -(10**19))]
TIMES = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
]
DATES = [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)]
HOURS = [time(0, 0), time(23, 59, 59, 999_999), time(12, 0)]
PRICES = [Decimal("-0.01"), Decimal("-9999999.99"), Decimal("9999999.99")]


def metrics_of(values: list[Any], kind: pa.DataType, *, group: int) -> ColumnMetrics:
    inner = pa.struct([arrow_field("x", kind, 7)])
    schema = pa.schema([arrow_field("val", inner, 2)])
    file = io.BytesIO()
    table = pa.Table.from_pylist([{"val": {"x": value}} for value in values], schema)
    pq.write_table(table, file, row_group_size=group, store_schema=False)
    leaves = leaves_of(schema)
    modes = {leaf.field_id: metrics_mode("truncate(16)") for leaf in leaves if leaf.field_id is not None}
    return column_metrics(pq.ParquetFile(file).metadata, leaves, modes)


@pytest.mark.parametrize("group", [1, 2, 10])
@pytest.mark.parametrize(
    ("values", "arrow", "iceberg"),
    [
        (UNSIGNED, pa.decimal128(20, 0), DECIMAL),
        (SIGNED, pa.decimal128(20, 0), DECIMAL),
        (TIMES, pa.timestamp("us", tz="UTC"), TimestamptzType()),
        (DATES, pa.date32(), DateType()),
        (HOURS, pa.time64("us"), TimeType()),
        (PRICES, pa.decimal128(9, 2), DecimalType(9, 2)),
    ],
)
def test_bounds_are_what_pyiceberg_writes(
    values: list[Any], arrow: pa.DataType, iceberg: PrimitiveType, group: int
) -> None:
    metrics = metrics_of([None, *values], arrow, group=group)
    assert metrics.lower_bounds == {7: to_bytes(iceberg, min(values))}
    assert metrics.upper_bounds == {7: to_bytes(iceberg, max(values))}
    assert metrics.null_value_counts == {7: 1}


@pytest.mark.parametrize("value", [*UNSIGNED, *SIGNED])
def test_a_decimal_comes_back_from_its_bound(value: Decimal) -> None:
    metrics = metrics_of([value], pa.decimal128(20, 0), group=1)
    assert from_bytes(DECIMAL, metrics.lower_bounds[7]) == from_bytes(DECIMAL, metrics.upper_bounds[7]) == value


def test_no_bounds_of_nulls_alone() -> None:
    assert metrics_of([None, None], pa.decimal128(20, 0), group=1).lower_bounds == {}


def test_values_of_fixed_width_have_counts_and_no_bounds() -> None:
    metrics = metrics_of([bytes(16), None], pa.binary(16), group=1)
    assert (metrics.value_counts, metrics.null_value_counts) == ({7: 2}, {7: 1})
    assert metrics.lower_bounds == metrics.upper_bounds == {}


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("group", [1, 2, 10])
@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([0.0, 0.0], -0.0, 0.0),
        ([-0.0], -0.0, 0.0),
        ([0.0, -0.0, 3.5], -0.0, 3.5),
        ([-2.0, -0.0], -2.0, 0.0),
        ([-INFINITY, 1.0], -INFINITY, 1.0),
    ],
)
def test_zero_as_a_bound_covers_both_zeros(values: list[float], low: float, high: float, group: int) -> None:
    metrics = metrics_of(values, pa.float64(), group=group)
    assert (metrics.lower_bounds[7], metrics.upper_bounds[7]) == (struct.pack("<d", low), struct.pack("<d", high))


def test_no_bound_is_nan_nor_leaves_rows_out_that_are_no_nan() -> None:
    mixed = metrics_of([NAN, 1.0, None, 2.0], pa.float32(), group=10)
    assert (mixed.lower_bounds[7], mixed.upper_bounds[7]) == (struct.pack("<f", 1.0), struct.pack("<f", 2.0))
    assert metrics_of([NAN, 1.0], pa.float64(), group=1).lower_bounds == {}
    assert metrics_of([NAN, None], pa.float64(), group=10).upper_bounds == {}


def test_nans_are_counted_and_those_below_null_structs_are_not() -> None:
    inner = pa.struct([arrow_field("x", pa.float64(), 7), arrow_field("y", pa.int64(), 8)])
    schema = pa.schema([arrow_field("val", inner, 2)])
    numbers = pa.array([NAN, 1.0, None, NAN, NAN])
    values = pa.StructArray.from_arrays(
        [numbers, pa.array(range(5))], fields=list(inner), mask=pa.array([False, False, False, False, True])
    )
    rows = pa.Table.from_arrays([values], schema=schema)
    leaves = leaves_of(schema)
    counted = {leaf.field_id: metrics_mode("counts") for leaf in leaves if leaf.field_id is not None}
    assert nan_counts(leaves, counted, rows) == {7: 2}
    assert nan_counts(leaves, counted, rows.slice(1, 2)) == {7: 0}
    assert nan_counts(leaves, dict.fromkeys(counted, metrics_mode("none")), rows) == {}


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("x" * 16 + "y", "x" * 15 + "y"),
        ("x" * 15 + "\U0010ffff" * 2, "x" * 14 + "y"),
        ("x" * 15 + "\ud7ff" + "z", "x" * 15 + "\ue000"),
        ("x" * 15 + "\U0001f600" + "z", "x" * 15 + "\U0001f601"),
        ("\U0010ffff" * 17, None),
        ("x" * 16, "x" * 16),
    ],
)
def test_text_bound_is_cut_by_characters_and_stays_above(text: str, above: str | None) -> None:
    metrics = metrics_of(["", text], pa.string(), group=1)
    assert metrics.lower_bounds == {7: b""}
    assert metrics.upper_bounds == ({} if above is None else {7: above.encode()})
    assert above is None or above.encode() >= text.encode()
    assert metrics_of([text], pa.string(), group=1).lower_bounds[7] == text[:16].encode()


@pytest.mark.parametrize(
    ("value", "above"),
    [(b"x" * 17, b"x" * 15 + b"y"), (b"x" * 15 + b"\xff" * 2, b"x" * 14 + b"y"), (b"\xff" * 17, None)],
)
def test_bytes_are_cut_by_bytes_and_the_upper_bound_stays_above(value: bytes, above: bytes | None) -> None:
    metrics = metrics_of([value], pa.binary(), group=1)
    assert (metrics.lower_bounds, metrics.upper_bounds) == ({7: value[:16]}, {} if above is None else {7: above})


def test_a_value_that_a_footer_does_not_keep_has_no_bound() -> None:
    """Pyarrow omits values of more than 4 KiB from statistics."""
    assert metrics_of(["x" * 5_000], pa.string(), group=1).upper_bounds == {}
