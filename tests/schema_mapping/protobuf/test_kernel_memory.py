"""The kernel's memory, up to 2 GiB."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from schema_mapping import compile_mapping
from schema_mapping.errors import KernelError, RowsTooLargeError
from schema_mapping.kernel.blocks import in_use
from schema_mapping.protobuf.decode import decode_parts
from schema_mapping.protobuf.kernel.decoder import Decoder, Values
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.proto_text import descriptor_of

TEXT = "message M { int64 id = 1; string name = 2; repeated W wide = 3; bytes one = 4; bytes other = 5; }"
WIDE = "message W { " + " ".join(f"int32 f{number} = {number};" for number in range(1, 200)) + " }"
MIB = 1 << 20
LARGEST = (1 << 31) - 1
ONE, OTHER = b"\x22", b"\x2a"
HEAD = 6  # bytes of a tag and a long length


def mapping() -> MessageMapping:
    return compile_mapping(descriptor_of(f"{TEXT} {WIDE}"))


def scratch_of(values: list[bytes]) -> int:
    program = mapping().program
    decoder = Decoder(program.tables, chunk_rows=program.chunk_rows, value_memory=program.value_memory)
    column = pa.array(values, pa.binary())
    _, offsets, data = column.buffers()
    decoder.expect(len(values), column.nbytes)
    decoder.feed(
        Values(
            validity=0,
            offsets=offsets.address,
            data=data.address,
            prefixes=0,
            start=0,
            length=len(values),
            large=False,
        )
    )
    assert decoder.rows()[0] == len(values)
    return decoder.scratch_bytes()


@pytest.mark.parametrize(
    ("value", "count"),
    [
        pytest.param(b"\x08\x05\x12\x03abc", 20_000, id="small values"),
        pytest.param(b"\x1a\x02\x08\x01", 20_000, id="a wide row for four bytes"),
        pytest.param(b"\x1a\x00" * 50, 1_000, id="fifty wide rows for a hundred bytes"),
        pytest.param(b"\xa0\x06\x01\x08\x01" * 20, 2_000, id="unknown fields"),
    ],
)
def test_scratch_is_for_a_chunk(value: bytes, count: int) -> None:
    assert scratch_of([value] * count * 10) <= scratch_of([value] * count) < 4 * MIB


def test_columns_take_little_more_memory_than_they_need() -> None:
    values = pa.array([b"\x08\x05\x12\x0aabcdefghij"] * 200_000)
    before = in_use()
    rows = mapping().decode(values)
    # a kept block may be two sizes larger than is asked for, a quarter each
    assert in_use() - before < 1.25 * 1.25 * 1.1 * 200_000 * (8 + 4 + 10)
    assert len(rows) == 200_000


def long_field(tag: bytes, size: int) -> bytes:
    return tag + bytes((size >> shift) & 0x7F | (0x80 if shift < 28 else 0) for shift in range(0, 35, 7))


def zeros(sizes: list[int], written: Mapping[int, bytes]) -> pa.LargeBinaryArray:
    # Values of mostly zeros, which take no memory until somebody writes there.
    ends: npt.NDArray[np.int64] = np.cumsum([0, *sizes])
    data: npt.NDArray[np.uint8] = np.zeros(ends[-1], dtype=np.uint8)
    for at, content in written.items():
        data[at : at + len(content)] = np.frombuffer(content, dtype=np.uint8)
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), [None, pa.py_buffer(ends), pa.py_buffer(data)])


@pytest.mark.parametrize("size", [LARGEST + 1, LARGEST + 1_000_000])
def test_a_value_of_2_gib_is_more_than_protobuf_allows(size: int) -> None:
    with pytest.raises(KernelError, match="larger than Protobuf allows"):
        mapping().decode(zeros([3, size], {}))


@pytest.mark.slow
def test_a_value_of_nearly_2_gib_is_a_column() -> None:
    kernel = mapping()
    size = LARGEST - 100
    values = zeros([2, size, 2], {0: b"\x08\x01", 2: long_field(ONE, size - HEAD), 2 + size: b"\x08\x02"})
    rows = kernel.decode(values)
    assert rows.field("__err__").null_count == rows.field("__raw__").null_count == 3
    assert rows.field("one")[1].as_buffer().size == size - HEAD
    assert kernel.encode(rows).cast(pa.large_binary()).equals(values)


@pytest.mark.slow
@pytest.mark.parametrize("chunked", [False, True])
def test_a_column_beyond_2_gib_comes_in_parts(chunked: bool) -> None:
    kernel = mapping()
    size = 700 << 20
    large = zeros([size] * 4, {size * index: long_field(ONE, size - HEAD) for index in range(4)})
    values = pa.chunked_array([large.slice(0, 2), large.slice(2)]) if chunked else large
    with pytest.raises(RowsTooLargeError, match="2 GiB"):
        kernel.decode(values)
    parts = decode_parts(values, kernel.program)
    assert [len(part) for part in parts] == [2, 2]
    for index, part in enumerate(parts):
        assert part.field("__raw__").null_count == 2
        assert kernel.encode(part).cast(pa.large_binary()).equals(large.slice(2 * index, 2))


@pytest.mark.slow
def test_values_over_2_gib_are_encoded_as_large_binary() -> None:
    kernel = mapping()
    half = 300 << 20
    values = zeros(
        [2 * half] * 4,
        {half * index: long_field(OTHER if index % 2 else ONE, half - HEAD) for index in range(8)},
    )
    encoded = kernel.encode(kernel.decode(values))
    assert pa.types.is_large_binary(encoded.type)
    assert encoded.equals(values)


@pytest.mark.slow
def test_bad_text_that_fills_the_side_store_does_not_raise() -> None:
    kernel = compile_mapping(descriptor_of('syntax = "proto2"; package t; message M { optional string s = 1; }'))
    size = ((1 << 31) - 1 - kernel.program.tables.names_size) // len("\ufffd".encode())
    data = np.full(size + HEAD + 1, 0xFF, np.uint8)
    data[:HEAD] = np.frombuffer(long_field(b"\x0a", size), np.uint8)
    offsets = pa.py_buffer(np.array([0, len(data)], np.int64))
    values = pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(data)])
    rows = kernel.decode(values)
    assert rows.field("__err__").to_pylist() == [f"truncated@{len(data) - 1}"]
    assert kernel.encode(rows).cast(pa.large_binary()).equals(values)
