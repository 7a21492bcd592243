"""Pages are fetched before decoding."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.storage.parquet.held_pages import ChunkSpan, HeldPages
from tests.support.storage.parquet_pages import page_headers, without_page

ROWS = 5_000
TABLE = pa.table(
    {
        "number": pa.array(range(ROWS)),
        "text": pa.array([f"text {n % 7}" if n % 3 else None for n in range(ROWS)]),
        "listed": pa.array([[n, n] if n % 2 else None for n in range(ROWS)]),
        "nothing": pa.nulls(ROWS, pa.string()),
    }
)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"data_page_version": "2.0"},
    {"use_dictionary": False, "compression": "zstd", "write_page_checksum": True},
    {"write_page_index": True, "column_encoding": {"number": "DELTA_BINARY_PACKED"}, "use_dictionary": ["text"]},
]


def written(**options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(TABLE, out, **{"data_page_size": 4096, "write_batch_size": 256, "row_group_size": 3_000} | options)
    return out.getvalue()


def spans_of(data: bytes, group: int = 0) -> dict[str, ChunkSpan]:
    about = pq.read_metadata(io.BytesIO(data)).row_group(group)
    chunks = [about.column(value) for value in range(about.num_columns)]
    return {chunk.path_in_schema: ChunkSpan.of_chunk(chunk) for chunk in chunks}


def counted(data: bytes, span: ChunkSpan) -> int | None:
    return span.counted(memoryview(data)[span.start : span.end])


class Counting(io.BytesIO):
    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.asked: list[int] = []

    def read(self, size: int | None = -1, /) -> bytes:
        self.asked.append(size or 0)
        return super().read(size)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sound_pages_have_the_values_that_the_footer_tells_of(options: dict[str, Any]):
    data = written(**options)
    assert len(list(page_headers(data))) > 16
    for group in (0, 1):
        for path, span in spans_of(data, group).items():
            assert counted(data, span) == span.values, path


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_page_that_pyarrow_leaves_out_is_missing(options: dict[str, Any]):
    data = written(**options)
    spans = spans_of(data)
    pages = [page for page in page_headers(data) if page.is_data and page.start < max(x.end for x in spans.values())]
    for header in pages:
        span = spans[header.column]
        result = counted(without_page(data, header), span)
        assert result is not None
        assert result < span.values


def page(values: int, kind: int = 0) -> bytes:
    return bytes((0x15, 2 * kind, 0x15, 4, 0x15, 4, 0x2C, 0x15, 2 * values, 0, 0)) + b"xy"


@pytest.mark.parametrize(
    ("pages", "values", "found"),
    [
        (page(3) + page(4), 7, 7),
        (page(3) + page(4), 8, 7),
        (page(3) + page(6), 7, 9),
        (page(3) + page(4, kind=4), 7, 3),
        (page(3) + page(9, kind=4) + page(4), 7, 7),
        (page(7) + b"what nobody reads", 7, 7),
        (page(7)[:-1], 7, 7),
        (b"", 0, 0),
        (b"", 7, 0),
    ],
)
def test_pages_are_counted_as_pyarrow_takes_them(pages: bytes, values: int, found: int):
    assert ChunkSpan(0, len(pages), values).counted(memoryview(pages)) == found


@pytest.mark.parametrize("data", [b"\x00", b"\xff" * 30, b"\x15\x00\x15\x08\x15\x07\x00", b"\x15\x00"])
def test_what_is_no_header_has_no_count(data: bytes):
    assert ChunkSpan(0, len(data), 10).counted(memoryview(data)) is None


def test_adjacent_chunks_come_in_one_request():
    data = written()
    stream = Counting(data)
    pages = HeldPages(stream)
    spans = spans_of(data)
    with pages.holding(spans.values()):
        assert len(stream.asked) == 1
        for span in spans.values():
            assert pages.chunk(span) == data[span.start : span.end]
        assert len(stream.asked) == 1
        pages.seek(-4, os.SEEK_END)
        assert (bytes(pages.read(4)), pages.tell()) == (b"PAR1", len(data))
        assert len(stream.asked) == 2
    assert pages.chunk(spans["number"]) == data[spans["number"].start : spans["number"].end]
    assert len(stream.asked) == 3


def test_chunks_far_from_each_other_come_by_themselves():
    stream = Counting(bytes(400 << 10))
    with HeldPages(stream).holding([ChunkSpan(300 << 10, 301 << 10, 1), ChunkSpan(4, 100, 1), ChunkSpan(100, 200, 1)]):
        assert stream.asked == [196, 1 << 10]


FAR = [ChunkSpan(start, start + 1_000, 1) for start in range(0, 2 << 20, 256 << 10)]
PLACES = bytes(byte for position in range(2 << 16) for byte in position.to_bytes(16, "big"))


@pytest.mark.parametrize("make", [io.BytesIO, pa.BufferReader], ids=["one by one", "at once"])
def test_chunks_far_from_each_other_are_those_of_their_places(make: Callable[[bytes], Any]):
    pages = HeldPages(make(PLACES))
    with pages.holding(FAR):
        assert [bytes(pages.chunk(value)) for value in FAR] == [PLACES[item.start : item.end] for item in FAR]


class Short(pa.PythonFile):
    def read_at(self, nbytes: int, offset: int) -> bytes:
        return PLACES[offset : offset + nbytes - 1]


@pytest.mark.parametrize("stream", [Short(io.BytesIO(PLACES), mode="r"), io.BytesIO(PLACES[:500])])
def test_an_answer_that_is_cut_short_may_be_asked_for_again(stream: Any):
    with pytest.raises(ConnectionError, match=r"the store gave \d+ bytes"), HeldPages(stream).holding(FAR):
        pass


class ShortBuffers(pa.PythonFile):
    def read_buffer(self, nbytes: int | None = None) -> pa.Buffer:
        return super().read_buffer(None if nbytes is None else nbytes - 1)


class ShortReads(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(-1 if size is None else size - 1)


@pytest.mark.parametrize("stream", [ShortBuffers(io.BytesIO(PLACES), mode="r"), ShortReads(PLACES)])
def test_so_may_one_of_what_is_not_held(stream: Any):
    pages = HeldPages(stream)
    pages.seek(100)
    with pytest.raises(ConnectionError, match="the store gave 49 bytes of the 50 from 100 on"):
        pages.read(50)
    assert pages.tell() == 100


def test_at_the_end_there_is_no_more():
    pages = HeldPages(io.BytesIO(PLACES[:500]))
    for at, left in ((460, 40), (500, 0), (700, 0)):
        pages.seek(at)
        assert len(pages.read(50)) == left


def test_each_thread_has_a_position_of_its_own():
    pages = HeldPages(pa.BufferReader(PLACES))
    barrier = threading.Barrier(len(FAR))

    def read(one: ChunkSpan) -> bytes:
        pages.seek(one.start)
        barrier.wait(20)
        return bytes(pages.read(100)) + bytes(pages.read(100))

    with ThreadPoolExecutor(len(FAR)) as threads:
        assert list(threads.map(read, FAR)) == [PLACES[item.start : item.start + 200] for item in FAR]


@pytest.mark.parametrize("use_threads", [False, True])
def test_pyarrow_reads_what_is_held(*, use_threads: bool):
    data = written()
    stream = Counting(data)
    pages = HeldPages(stream)
    file = pq.ParquetFile(pages, metadata=pq.read_metadata(io.BytesIO(data)), pre_buffer=False)
    result = []
    for group in range(file.num_row_groups):
        with pages.holding(spans_of(data, group).values()):
            result += file.iter_batches(row_groups=[group], batch_size=500, use_threads=use_threads)
    assert pa.Table.from_batches(result) == TABLE
    assert len(stream.asked) == file.num_row_groups
    pages.close()
    assert not stream.closed
