"""Data that the column writer refuses."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.errors import StorageError
from archiver.storage.parquet.columns.file_writer import FileWriter
from archiver.storage.parquet.columns.plan import ColumnPlan, Encoding
from archiver.storage.parquet.leaves import leaves_of

STRICT = pa.field("element", pa.string(), nullable=False)
REQUIRED = {
    "a text": (pa.field("a", pa.string(), nullable=False), ["x", None]),
    "a number": (pa.field("a", pa.int64(), nullable=False), [1, None]),
    "a member": (pa.field("a", pa.struct([pa.field("b", pa.int32(), nullable=False)])), [{"b": 1}, {"b": None}]),
    "an element": (pa.field("a", pa.list_(STRICT)), [["x"], [], ["y", None]]),
    "a struct": (pa.field("a", pa.struct([pa.field("b", pa.int32())]), nullable=False), [None, {"b": 1}]),
}


class FullSink:
    def __init__(self, room: int) -> None:
        self.room = room
        self.is_full = False

    def write(self, data: Any) -> None:
        if len(memoryview(data).cast("B")) > self.room and not self.is_full:
            self.is_full = True
            raise OSError(28, "No space left on device")
        self.room -= len(memoryview(data).cast("B"))


def plans(schema: pa.Schema, encoding: Encoding = Encoding.PLAIN) -> list[ColumnPlan]:
    return [ColumnPlan(leaf=leaf, encoding=encoding, level=None, has_statistics=True) for leaf in leaves_of(schema)]


def loose(field: pa.Field, values: list[Any]) -> pa.RecordBatch:
    """A batch whose values don't fit the field: Arrow doesn't check."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([pa.field(entry.name, entry.type) for entry in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(pa.field("element", pa.string()))
    array = pa.array(values, kind)
    made = pa.Array.from_buffers(
        field.type, len(array), array.buffers()[: field.type.num_buffers], children=children(array)
    )
    return pa.RecordBatch.from_arrays([made], schema=pa.schema([field]))


def children(array: pa.Array) -> list[pa.Array]:
    if pa.types.is_struct(array.type):
        return [array.field(index) for index in range(array.type.num_fields)]
    return [array.values] if pa.types.is_list(array.type) else []


@pytest.mark.parametrize(("field", "values"), REQUIRED.values(), ids=REQUIRED)
@pytest.mark.parametrize("encoding", [Encoding.PLAIN, Encoding.DICTIONARY])
def test_a_null_where_none_is_allowed(field: pa.Field, values: list[Any], encoding: Encoding) -> None:
    schema = pa.schema([field])
    writer = FileWriter(pa.BufferOutputStream(), schema, plans(schema, encoding))
    with pytest.raises(StorageError, match=r"null.*column='?a"):
        writer.write([loose(field, values)])


def test_nulls_below_a_null_are_none() -> None:
    kind = pa.struct([pa.field("b", pa.int32(), nullable=False)])
    below = pa.array([1, None, 3], pa.int32())
    array = pa.Array.from_buffers(kind, 3, [pa.py_buffer(b"\x05")], children=[below])
    schema = pa.schema([pa.field("a", kind)])
    sink = pa.BufferOutputStream()
    writer = FileWriter(sink, schema, plans(schema))
    writer.write([pa.RecordBatch.from_arrays([array], schema=schema)])
    writer.close({})
    assert pq.read_table(pa.BufferReader(sink.getvalue())).to_pylist() == [
        {"a": {"b": 1}},
        {"a": None},
        {"a": {"b": 3}},
    ]


@pytest.mark.parametrize("room", [0, 4, 1_000, 200_000])
def test_a_file_doesnt_go_on_after_an_error(room: int) -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.int64())])
    batch = pa.record_batch([pa.array(range(60_000))] * 2, schema=schema)
    sink: Any = FullSink(room)
    try:
        writer = FileWriter(sink, schema, plans(schema))
        with pytest.raises(OSError, match="space"):
            writer.write([batch])
    except OSError:
        assert room < len(b"PAR1"), "the file's first bytes had no room"
        return
    with pytest.raises(StorageError, match="before"):
        writer.write([batch])
    with pytest.raises(StorageError, match="before"):
        writer.close({})


def test_a_finished_file_doesnt_go_on() -> None:
    schema = pa.schema([pa.field("a", pa.int64())])
    writer = FileWriter(pa.BufferOutputStream(), schema, plans(schema))
    writer.close({})
    with pytest.raises(StorageError, match="finished"):
        writer.close({})


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        (pa.string(), Encoding.DIFFERENCES),
        (pa.float64(), Encoding.DIFFERENCES),
        (pa.bool_(), Encoding.DIFFERENCES),
        (pa.decimal128(9, 2), Encoding.DIFFERENCES),
        (pa.int64(), Encoding.SHARED_STARTS),
        (pa.bool_(), Encoding.SHARED_STARTS),
        (pa.binary(4), Encoding.SHARED_STARTS),
    ],
)
def test_an_encoding_that_a_type_has_not(kind: pa.DataType, encoding: Encoding) -> None:
    schema = pa.schema([pa.field("a", kind)])
    with pytest.raises(ValueError, match="no encoding"):
        FileWriter(pa.BufferOutputStream(), schema, plans(schema, encoding))


@pytest.mark.parametrize("size", [-32, 4, 33])
def test_a_filter_without_whole_blocks(size: int) -> None:
    schema = pa.schema([pa.field("a", pa.int64())])
    (leaf,) = leaves_of(schema)
    plan = ColumnPlan(leaf=leaf, encoding=Encoding.PLAIN, level=None, has_statistics=True, filter_size=size)
    with pytest.raises(ValueError, match="blocks"):
        FileWriter(pa.BufferOutputStream(), schema, [plan])


def test_a_sink_that_keeps_what_it_was_given() -> None:
    kept: list[Any] = []
    sink: Any = type("Keeping", (), {"write": staticmethod(kept.append)})
    schema = pa.schema([pa.field("a", pa.int64())])
    writer = FileWriter(sink, schema, plans(schema))
    writer.write([pa.record_batch({"a": [1, 2]})])
    with pytest.raises(ValueError, match="released"):
        bytes(next(value for value in kept if isinstance(value, memoryview)))


@pytest.mark.parametrize(
    "kind",
    [pa.float16(), pa.timestamp("s"), pa.time32("s"), pa.int16(), pa.uint64(), pa.null(), pa.decimal256(50, 1)],
    ids=str,
)
def test_a_type_that_no_table_has(kind: pa.DataType) -> None:
    schema = pa.schema([pa.field("a", kind)])
    with pytest.raises(StorageError, match="type"):
        FileWriter(pa.BufferOutputStream(), schema, plans(schema))


@pytest.mark.parametrize("rows", [{"a": ["x"], "b": [1]}, {"a": [1]}, {"b": [1], "a": [1]}], ids=str)
def test_rows_of_other_columns(rows: dict[str, list[Any]]) -> None:
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.int64())])
    writer = FileWriter(pa.BufferOutputStream(), schema, plans(schema))
    with pytest.raises(StorageError, match="columns"):
        writer.write([pa.record_batch(rows)])


def test_batches_may_come_from_a_generator() -> None:
    batch = pa.record_batch({"a": [1, 2, 3]})
    sink = pa.BufferOutputStream()
    writer = FileWriter(sink, batch.schema, plans(batch.schema))
    writer.write(value for value in (batch, batch))
    assert writer.close({}).num_rows == 6


def seconds(values: pa.Array) -> float:
    batch = pa.record_batch([values], ["a"])
    sink = pa.BufferOutputStream()
    writer = FileWriter(sink, batch.schema, plans(batch.schema, Encoding.DICTIONARY))
    started = time.process_time()
    writer.write([batch])
    taken = time.process_time() - started
    writer.close({})
    assert pq.read_table(pa.BufferReader(sink.getvalue())).column("a").combine_chunks().equals(values)
    return taken


def test_values_chosen_for_one_hash_are_found_as_fast_as_others() -> None:
    """An unkeyed multiplicative hash sends all of these to one slot."""
    count = 60_000
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    chosen = [(position << 32 | position) * inverse % (1 << 64) for position in range(count)]
    usual = seconds(pa.array(range(count)))
    assert seconds(pa.array([value - (value >> 63 << 64) for value in chosen])) < 20 * usual + 0.1
    assert seconds(pa.array([float(value) for value in range(count)])) < 20 * usual + 0.1
