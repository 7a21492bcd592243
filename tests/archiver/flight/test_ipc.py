"""Arrow messages from untrusted clients."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc

from archiver.errors import BadBatch
from archiver.flight.ipc import HeaderLimits, StreamDictionaries, kept_bytes, read_batch, read_schema

SCHEMA = pa.schema([("value", pa.binary())])
MOST = 1 << 20


def parts(encapsulated: pa.Buffer) -> tuple[memoryview, memoryview]:
    data = memoryview(encapsulated)
    size = int.from_bytes(data[4:8], "little")
    return data[8 : 8 + size], data[8 + size :]


def message(batch: pa.RecordBatch, *, compression: str | None = None) -> tuple[memoryview, memoryview]:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    return parts(list(ipc.MessageReader.open_stream(sink.getvalue()))[-1].serialize())


def batch_of(*values: bytes | None) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.binary())], schema=SCHEMA)


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_batches_come_back(compression: str | None) -> None:
    batch = batch_of(b"a", None, b"b" * 10_000)
    assert read_schema(parts(SCHEMA.serialize())[0]).equals(SCHEMA)
    assert read_batch(*message(batch, compression=compression), SCHEMA, most_bytes=MOST).equals(batch)


def test_a_batch_that_unpacks_to_more_is_not_unpacked() -> None:
    header, body = message(batch_of(bytes(MOST + 1)), compression="zstd")
    assert len(body) < 10_000
    with pytest.raises(BadBatch, match=r"the batch unpacks to 1,04\d,\d+ bytes, more than `flight.max_message_size`"):
        read_batch(header, body, SCHEMA, most_bytes=MOST)


def test_bad_offsets_are_refused() -> None:
    header, body = message(batch_of(b"a", b"b"))
    changed = bytearray(body)
    changed[4:8] = (1 << 30).to_bytes(4, "little")
    with pytest.raises(BadBatch, match="the batch is not valid Arrow data"):
        read_batch(header, memoryview(bytes(changed)), SCHEMA, most_bytes=MOST)


def test_dictionaries_are_refused_by_name() -> None:
    batch = pa.record_batch([pa.array([b"a"], pa.binary()).dictionary_encode()], names=["value"])
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    _, second, _ = ipc.MessageReader.open_stream(sink.getvalue())
    dictionary, _ = parts(second.serialize())
    with pytest.raises(BadBatch, match="a record batch must come here, and a dictionary came: send plain columns"):
        read_batch(dictionary, memoryview(b""), SCHEMA, most_bytes=MOST)


def test_a_schema_of_very_many_fields_is_refused_unread() -> None:
    header, _ = parts(pa.schema([(f"field {number}", pa.int8()) for number in range(10_000)]).serialize())
    with pytest.raises(BadBatch, match=f"bytes, and may have {HeaderLimits().size:,}"):
        read_schema(header)


def test_fields_are_counted_before_a_schema_is_read() -> None:
    def header(count: int) -> memoryview:
        inner = pa.struct([(f"f{number}", pa.int8()) for number in range(count // 2)])
        return parts(
            pa.schema([("a", inner), *((f"c{number}", pa.int8()) for number in range(count // 2))]).serialize()
        )[0]

    with pytest.raises(BadBatch, match="the schema has more than 256 fields"):
        read_schema(header(300))
    assert len(read_schema(header(300), HeaderLimits(columns=60))) == 151
    assert len(read_schema(header(200))) == 101


def streamed(
    *values: list[str], deltas: bool = False, compression: str | None = None
) -> list[tuple[memoryview, memoryview]]:
    """The schema, dictionaries and batches of a stream."""
    sink = pa.BufferOutputStream()
    kind = pa.dictionary(pa.int8(), pa.string())
    options = ipc.IpcWriteOptions(emit_dictionary_deltas=deltas, compression=compression)
    with ipc.new_stream(sink, pa.schema([("value", kind)]), options=options) as writer:
        for part in values:
            writer.write_batch(pa.record_batch({"value": pa.array(part, kind)}))
    return [parts(part.serialize()) for part in ipc.MessageReader.open_stream(sink.getvalue())]


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_the_newest_dictionaries_are_of_a_batch(compression: str | None) -> None:
    schema, first, batch, second, other = streamed(["a", "b"], ["c"], compression=compression)
    dictionaries = StreamDictionaries(schema[0], HeaderLimits())
    assert dictionaries.messages == b""
    read: list[list[str]] = []
    for dictionary, rows in ((first, batch), (second, other)):
        assert dictionaries.has(dictionary[0])
        assert not dictionaries.has(rows[0])
        dictionaries.add(*dictionary)
        taken = read_batch(*rows, read_schema(schema[0]), most_bytes=MOST, dictionaries=dictionaries.messages)
        read.append(taken.column("value").to_pylist())
    assert read == [["a", "b"], ["c"]]


def test_dictionaries_are_whole_and_small() -> None:
    schema, first, _, second, _ = streamed(["a"], ["a", "b"], deltas=True)
    dictionaries = StreamDictionaries(schema[0], HeaderLimits())
    dictionaries.add(*first)
    with pytest.raises(BadBatch, match="a dictionary is sent in parts"):
        dictionaries.add(*second)
    _, large, _ = streamed(["x" * (2 << 20)], compression="zstd")
    assert len(large[1]) < 10_000
    with pytest.raises(BadBatch, match="the dictionaries need more than 1,048,576 bytes"):
        dictionaries.add(*large)


def test_a_batch_without_its_dictionary_is_refused() -> None:
    schema, _, batch = streamed(["a"])
    with pytest.raises(BadBatch, match="the batch is not valid Arrow data"):
        read_batch(*batch, read_schema(schema[0]), most_bytes=MOST)


@given(st.data())
def test_changed_dictionaries_are_refused_or_read(data: st.DataObject) -> None:
    schema, dictionary, batch = streamed(["a", "b", "a"])
    header = bytearray(dictionary[0])
    header[data.draw(st.integers(0, len(header) - 1))] = data.draw(st.integers(0, 255))
    dictionaries = StreamDictionaries(schema[0], HeaderLimits())
    try:
        dictionaries.add(memoryview(bytes(header)), dictionary[1])
        read_batch(*batch, read_schema(schema[0]), most_bytes=MOST, dictionaries=dictionaries.messages)
    except BadBatch:
        pass


def test_a_very_deep_schema_is_refused() -> None:
    kind: pa.DataType = pa.int8()
    for _ in range(200):
        kind = pa.list_(kind)
    header, _ = parts(pa.schema([("value", kind)]).serialize())
    with pytest.raises(BadBatch):
        read_schema(header)


@given(data=st.data())
def test_damaged_messages_are_refused_or_read(data: st.DataObject) -> None:
    """Only BadBatch is raised, and accepted data is valid."""
    header, body = message(batch_of(b"a", None, b"ccc"), compression=data.draw(st.sampled_from([None, "zstd"])))
    changed = bytearray(bytes(header) + bytes(body))
    for position in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=4)):
        changed[position] = data.draw(st.integers(0, 255))
    view = memoryview(bytes(changed))
    try:
        batch = read_batch(view[: len(header)], view[len(header) :], SCHEMA, most_bytes=MOST)
    except BadBatch:
        return
    batch.validate(full=True)


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_kept_bytes_are_of_unpacked_values_and_rows(compression: str | None) -> None:
    rows, large = batch_of(*[b""] * 10_000), batch_of(bytes(500_000))
    assert 240_000 <= kept_bytes(*message(rows, compression=compression), most_bytes=MOST) <= 250_000
    assert 500_000 <= kept_bytes(*message(large, compression=compression), most_bytes=MOST) <= 501_000
    assert kept_bytes(*message(large, compression=compression), most_bytes=400_000) == 0
