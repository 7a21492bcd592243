"""Batches of the records shape."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from archiver.errors import BadBatch
from archiver.flight.batch_metadata import BatchMetadata
from archiver.flight.record_rows import check_schema, intake_batch, record_rows
from archiver.intake.batches import ROW_COLUMNS, IntakeBatch

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def taken(columns: dict[str, pa.Array], *, partitions: int = 3, **metadata: Any) -> IntakeBatch:
    batch = pa.RecordBatch.from_pydict(columns)
    check_schema(batch.schema)
    return intake_batch(record_rows(batch), BatchMetadata(client="a", batch_id=0, **metadata), partitions=partitions)


def rows(batch: IntakeBatch) -> list[dict[str, Any]]:
    return pa.ipc.read_record_batch(pa.py_buffer(batch.body), ROW_COLUMNS).to_pylist()


def test_values_alone_are_records() -> None:
    batch = taken({"value": pa.array(["x", None])}, partition=1)
    assert batch.rows == ((1, 2),)
    assert rows(batch) == [
        {"timestamp": -1, "key": None, "value": b"x", "headers": []},
        {"timestamp": -1, "key": None, "value": None, "headers": []},
    ]


@pytest.mark.parametrize(
    "headers",
    [
        pa.array([[{"key": "k", "value": b"v"}, {"key": "k", "value": None}], None, []], HEADERS),
        pa.array([[("k", b"v"), ("k", None)], None, []], pa.map_(pa.string(), pa.binary())),
        pa.array(
            [[{"key": b"k", "value": "v"}, {"key": b"k", "value": None}], None, []],
            pa.large_list(pa.struct([("key", pa.large_binary()), ("value", pa.string())])),
        ),
    ],
    ids=lambda column: str(column.type)[:10],
)
def test_headers_are_lists_or_maps(headers: pa.Array) -> None:
    batch = taken({"value": pa.array([b"1", b"2", b"3"]), "headers": headers}, partition=0)
    expected = [[{"key": b"k", "value": b"v"}, {"key": b"k", "value": None}], [], []]
    assert [row["headers"] for row in rows(batch)] == expected
    sliced = taken({"value": pa.array([b"1", b"2"]), "headers": headers.slice(0, 2)}, partition=0)
    assert [row["headers"] for row in rows(sliced)] == expected[:2]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_have_any_unit(unit: str) -> None:
    column = pa.array([1_000, None], pa.timestamp("ms")).cast(pa.timestamp(unit, "UTC"))
    batch = taken({"value": pa.array([b"1", b"2"]), "timestamp": column}, partition=0)
    assert [row["timestamp"] for row in rows(batch)] == [1_000, -1]


def test_rows_are_sorted_by_partition_and_stay_in_order() -> None:
    keys = pa.array([f"key {number % 5}" for number in range(50)])
    batch = taken({"key": keys, "value": pa.array([b"%d" % number for number in range(50)])})
    assert [partition for partition, _ in batch.rows] == sorted(partition for partition, _ in batch.rows)
    values = rows(batch)
    for key in {row["key"] for row in values}:
        numbers = [int(row["value"]) for row in values if row["key"] == key]
        assert numbers == sorted(numbers)
    assert sorted(int(row["value"]) for row in values) == list(range(50))


@pytest.mark.parametrize("partition", [None, 2])
def test_an_empty_batch_has_no_rows(partition: int | None) -> None:
    empty = {"key": pa.array([], pa.string()), "value": pa.array([], pa.binary()), "headers": pa.array([], HEADERS)}
    batch = taken(empty, partition=partition)
    assert (batch.rows, rows(batch)) == ((), [])


def test_the_digest_is_of_rows_and_partition() -> None:
    columns = {"key": pa.array(["a", "b"]), "value": pa.array([b"1", b"2"])}
    same = taken({"value": pa.array(["1", "2"]), "key": pa.array([b"a", b"b"])})
    assert taken(columns).digest == same.digest
    variants = [
        taken(columns, partition=0),
        taken(columns, partition=1),
        taken(columns | {"key": pa.array(["a", None])}),
        taken(columns | {"value": pa.array([b"1", b""])}),
        taken(columns | {"value": pa.array([b"1", None])}),
        taken(columns | {"timestamp": pa.array([0, -1])}),
        taken({name: column[::-1] for name, column in columns.items()}),
    ]
    assert len({batch.digest for batch in (same, *variants)}) == 1 + len(variants)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (pa.schema([("key", pa.string())]), "the columns of records are `value`, and if needed `key`, `headers` and"),
        (pa.schema([("value", pa.binary()), ("x", pa.int8())]), "the columns of records are `value`, and if needed"),
        (pa.schema([("value", pa.int8())]), "the column value must be binary or string, and is int8"),
        (pa.schema([("value", pa.binary()), ("key", pa.list_(pa.binary()))]), "the column key must be binary or str"),
        (
            pa.schema([("value", pa.binary()), ("timestamp", pa.int32())]),
            "the column timestamp must be a timestamp, or an int64 of ms since 1970, and is int32",
        ),
        (
            pa.schema([("value", pa.binary()), ("headers", pa.list_(pa.binary()))]),
            "the column headers must be a list of structs of `key` and `value`, both binary or string, or a map",
        ),
    ],
)
def test_a_wrong_schema_names_the_column(schema: pa.Schema, message: str) -> None:
    with pytest.raises(BadBatch) as caught:
        check_schema(schema)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"headers": pa.array([[{"key": None, "value": b"v"}]], HEADERS)}, "a header, or the key of a header, is null"),
        ({"headers": pa.array([[None]], HEADERS)}, "a header, or the key of a header, is null"),
        ({"timestamp": pa.array([1], pa.timestamp("us"))}, "the column timestamp has parts of a millisecond"),
        ({"timestamp": pa.array([1 << 62], pa.timestamp("s"))}, "the column timestamp is out of range"),
    ],
)
def test_a_wrong_column_is_named(column: dict[str, pa.Array], message: str) -> None:
    with pytest.raises(BadBatch) as caught:
        taken({"value": pa.array([b"x"]), **column})
    assert message in str(caught.value)


def test_rows_without_headers_take_little_memory() -> None:
    before = pa.total_allocated_bytes()
    most = pa.default_memory_pool()
    batch = taken({"value": pa.array([b""] * 100_000, pa.binary())}, partition=0)
    assert len(batch.body) < 3_000_000
    assert most.bytes_allocated() - before < 10_000_000


def test_timestamps_that_contradict_the_metadata_are_refused() -> None:
    columns = {"value": pa.array([b"x", b"y"]), "timestamp": pa.array([10, 20])}
    assert taken(columns, start_ts=10, end_ts=20).rows
    for bounds in ({"start_ts": 11}, {"end_ts": 19}):
        with pytest.raises(BadBatch, match="rows have timestamps from 10 to 20, outside of `start_ts` and `end_ts`"):
            taken(columns, **bounds)
