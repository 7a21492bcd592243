"""Bounds of columns, compared with pyiceberg's serialization of the true lowest and highest values."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.types import DateType, DecimalType, PrimitiveType, TimestamptzType, TimeType

from archiver.storage.parquet.leaves import leaves_of
from archiver.storage.parquet.metrics import ColumnMetrics, column_metrics, metrics_mode
from schema_mapping.columns.arrow import arrow_field

DECIMAL = DecimalType(20, 0)
UNSIGNED = [Decimal(each) for each in (127, 128, 0, 2**63, 2**64 - 1, 255)]
SIGNED = [Decimal(each) for each in (5, -1, -128, -129, 10**19, -(10**19))]
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
    found = metrics_of([None, *values], arrow, group=group)
    assert found.lower_bounds == {7: to_bytes(iceberg, min(values))}
    assert found.upper_bounds == {7: to_bytes(iceberg, max(values))}
    assert found.null_value_counts == {7: 1}


@pytest.mark.parametrize("value", [*UNSIGNED, *SIGNED])
def test_a_decimal_comes_back_from_its_bound(value: Decimal) -> None:
    found = metrics_of([value], pa.decimal128(20, 0), group=1)
    assert from_bytes(DECIMAL, found.lower_bounds[7]) == from_bytes(DECIMAL, found.upper_bounds[7]) == value


def test_no_bounds_of_nulls_alone() -> None:
    assert metrics_of([None, None], pa.decimal128(20, 0), group=1).lower_bounds == {}


def test_values_of_fixed_width_have_counts_and_no_bounds() -> None:
    found = metrics_of([bytes(16), None], pa.binary(16), group=1)
    assert (found.value_counts, found.null_value_counts) == ({7: 2}, {7: 1})
    assert found.lower_bounds == found.upper_bounds == {}
