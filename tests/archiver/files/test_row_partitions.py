"""Partitions of rows, as pyiceberg computes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import from_bytes
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestamptzType,
    TimeType,
)

from archiver.files.row_partitions import RowPartitions, in_bytes, transformed
from catalog.partitioning import PartitionColumn, Partitioning
from schema_mapping.columns.arrow import arrow_field

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(["", "\0", "a\0b", "😀😀", "é"])
KINDS: dict[str, tuple[pa.DataType, PrimitiveType, st.SearchStrategy[Any]]] = {
    "string": (pa.string(), StringType(), TEXT | st.just("x" * 5_000)),
    "binary": (pa.binary(), BinaryType(), st.binary(max_size=12)),
    "int": (pa.int32(), IntegerType(), st.integers(-(2**31) + 1_000, 2**31 - 1)),
    "long": (pa.int64(), LongType(), st.integers(-(2**63) + 1_000, 2**63 - 1)),
    "boolean": (pa.bool_(), BooleanType(), st.booleans()),
    "date": (pa.date32(), DateType(), st.integers(-700_000, 2_900_000)),
    "time": (pa.time64("us"), TimeType(), st.integers(0, 86_399_999_999)),
    "timestamptz": (
        pa.timestamp("us", "UTC"),
        TimestamptzType(),
        st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
    ),
    "decimal": (
        pa.decimal128(20, 0),
        DecimalType(20, 0),
        st.integers(0, 2**64 - 1).map(Decimal) | st.sampled_from([Decimal(-5), Decimal(2**63)]),
    ),
}
TRANSFORMS = ("identity", "bucket[1]", "bucket[16]", "truncate[1]", "truncate[4]", "year", "month", "day", "hour")
CASES = [
    (kind, transform)
    for kind, (_, iceberg, _) in KINDS.items()
    for transform in TRANSFORMS
    if parse_transform(transform).can_transform(iceberg)
]


@pytest.mark.parametrize(("kind", "transform"), CASES)
@given(data=st.data())
def test_every_value_is_what_pyiceberg_computes(kind: str, transform: str, data: st.DataObject) -> None:
    arrow, iceberg, values = KINDS[kind]
    given_values = data.draw(st.lists(st.none() | values, max_size=20))
    column = pa.array([0, *given_values, 0] if kind in ("date", "time") else [None, *given_values, None], arrow)
    column = column.slice(1, len(given_values))  # a slice, as rows of a group are
    judge = parse_transform(transform)
    result = judge.result_type(iceberg)
    expected = [judge.transform(iceberg)(value) for value in given_values]
    got = [None if byte is None else from_bytes(result, byte) for byte in in_bytes(transformed(transform, column))]
    assert got == expected


def schema() -> pa.Schema:
    inner = pa.struct([arrow_field("region", pa.string(), 101), arrow_field("tier", pa.int32(), 102)])
    return pa.schema(
        [
            arrow_field("key", pa.struct([arrow_field("__raw__", pa.binary(), 5)]), 1),
            arrow_field("val", pa.struct([arrow_field("customer", inner, 100)]), 2),
        ]
    )


def partitioning(*columns: tuple[str, int]) -> Partitioning:
    return Partitioning(tuple(PartitionColumn(f"c{id_}", by, id_) for by, id_ in columns))


ROWS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=2),
        st.none()
        | st.just({"customer": None})
        | st.builds(
            lambda r, t: {"customer": {"region": r, "tier": t}},
            st.none() | st.sampled_from(["eu", "us", ""]),
            st.none() | st.integers(-5, 5),
        ),
    ),
    min_size=1,
    max_size=40,
)


@given(rows=ROWS, day=st.integers(0, 30_000))
def test_sort_by_partition_is_stable(rows: list[Any], day: int) -> None:
    by = partitioning(("day", 30), ("identity", 101), ("bucket[3]", 5), ("truncate[2]", 102), ("identity", 999))
    batch = pa.RecordBatch.from_pylist([{"key": {"__raw__": key}, "val": val} for key, val in rows], schema())
    result = RowPartitions(by, schema()).sort(batch, day)
    order = np.arange(len(rows)) if result.order is None else result.order
    assert sorted(order.tolist()) == list(range(len(rows)))
    assert len(set(result.values)) == len(result.values) == len(result.starts) - 1
    bucket, truncate = parse_transform("bucket[3]"), parse_transform("truncate[2]")
    for values, start, end in zip(result.values, result.starts[:-1], result.starts[1:], strict=True):
        places = order[start:end].tolist()
        assert places == sorted(places)
        assert places
        for position in places:
            key, val = rows[position]
            customer = (val or {}).get("customer") or {}
            expected = (
                day,
                customer.get("region"),
                bucket.transform(BinaryType())(key),
                truncate.transform(IntegerType())(customer.get("tier")),
                None,  # a column that the rows lack
            )
            kinds = (DateType(), StringType(), IntegerType(), IntegerType(), StringType())
            assert expected == tuple(
                None if value is None else from_bytes(kind, value) for kind, value in zip(kinds, values, strict=True)
            )


def test_many_columns_of_many_values_do_not_overflow() -> None:
    fields = [arrow_field(f"c{n}", pa.string(), 200 + n) for n in range(8)]
    kind = pa.schema([arrow_field("val", pa.struct(fields), 2)])
    count = 20_000
    texts = np.random.default_rng(3).integers(0, 10_000, (8, count)).astype(str)
    columns = [pa.array(text) for text in texts]
    rows = pa.RecordBatch.from_arrays([pa.StructArray.from_arrays(columns, fields=fields)], schema=kind)
    by = partitioning(*(("identity", 200 + n) for n in range(8)))
    result = RowPartitions(by, kind).sort(rows, 0)
    assert len(result.values) == len({*zip(*texts.tolist(), strict=True)})


def test_times_of_a_clock_are_those_that_people_know() -> None:
    time = pa.array(
        [(datetime(2026, 3, 1, 7, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)], pa.timestamp("us", "UTC")
    )
    assert in_bytes(transformed("day", time)) == [(date(2026, 3, 1) - date(1970, 1, 1)).days.to_bytes(4, "little")]
