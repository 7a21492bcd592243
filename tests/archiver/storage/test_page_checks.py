"""Columns proven intact by checksums."""

from __future__ import annotations

import io
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.storage.parquet.file_end import FileEnd
from archiver.storage.parquet.footer_chunks import ColumnChunk, FooterChunks
from archiver.storage.parquet.leaves import leaves_of
from archiver.storage.parquet.page_checks import RUN_BYTES, are_as_written, doubtful

ROWS = 60
COLUMNS = {
    "constant": pa.array([7] * ROWS, pa.int64()),
    "differences": pa.array([1000 + 3 * n for n in range(ROWS)], pa.timestamp("us", tz="UTC")),
    "dictionary": pa.array([n % 3 for n in range(ROWS)], pa.int32()),
    "holes": pa.array([None if n % 4 else n for n in range(ROWS)], pa.int32()),
    "nothing": pa.nulls(ROWS, pa.int64()),
    "plain": pa.array([n / 7 for n in range(ROWS)], pa.float64()),
    "texts": pa.array([f"text number {n}" for n in range(ROWS)]),
    "listed": pa.array([[n, n + 1] if n % 3 else [] for n in range(ROWS)], pa.list_(pa.int64())),
    "below": pa.array(
        [{"one": n % 2, "other": None} for n in range(ROWS)], pa.struct([("one", pa.int32()), ("other", pa.int64())])
    ),
}
UNPACKED = ("constant", "nothing", "below.other")
DICTIONARIES = ("constant", "dictionary", "nothing", "below.one", "below.other")


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    paths = [leaf.path for leaf in leaves_of(table.schema)]
    pq.write_table(
        table,
        out,
        **{
            "compression": {path: "none" if path in UNPACKED else "zstd" for path in paths},
            "use_dictionary": [path for path in paths if path in DICTIONARIES],
            "column_encoding": {path: "DELTA_BINARY_PACKED" for path in paths if path == "differences"},
            "write_page_index": True,
            "write_page_checksum": True,
            "write_batch_size": 10,
            "data_page_size": 100,
            "store_schema": False,
        }
        | options,
    )
    return out.getvalue()


def column_of(data: bytes, path: str) -> Any:
    try:
        with pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True) as file:
            return file.read(columns=[path], use_threads=False)
    except (OSError, pa.ArrowException) as error:
        return type(error)


def footer_of(data: bytes) -> pq.FileMetaData:
    return pq.ParquetFile(io.BytesIO(data)).metadata


def chunks_of(data: bytes) -> FooterChunks:
    return FooterChunks(FileEnd.read(io.BytesIO(data)))


def pages_of(data: bytes, chunk: ColumnChunk) -> bytes:
    return data[chunk.start : chunk.start + chunk.size]


def doubts(data: bytes) -> list[str]:
    stream = io.BytesIO(data)
    with pq.ParquetFile(io.BytesIO(data)) as file:
        leaves, footer = leaves_of(file.schema_arrow), file.metadata
    chunks, groups = chunks_of(data), range(footer.num_row_groups)
    return [leaf.path for group in groups for leaf in doubtful(stream, leaves, chunks, group, footer.schema)]  # type: ignore[arg-type]


@pytest.mark.parametrize("packing", ["as is", "one page"])
def test_no_flipped_bit_is_vouched_for_that_a_reader_would_see(packing: str):
    table = pa.table(COLUMNS)
    data = written(table, **({} if packing == "as is" else {"data_page_size": 1 << 20}))
    schema, chunks = footer_of(data).schema, chunks_of(data)
    counter: Counter[tuple[str, bool]] = Counter()
    for leaf in leaves_of(table.schema):
        path, chunk, column = leaf.path, chunks.column(0, leaf.index), schema.column(leaf.index)
        before = column_of(data, path)
        assert are_as_written(memoryview(pages_of(data, chunk)), chunk, column), path
        for bit in range(8 * chunk.start, 8 * (chunk.start + chunk.size)):
            hurt = bytearray(data)
            hurt[bit // 8] ^= 1 << bit % 8
            is_vouched = are_as_written(memoryview(pages_of(bytes(hurt), chunk)), chunk, column)
            counter[path, is_vouched] += 1
            if is_vouched:
                result = column_of(bytes(hurt), path)
                assert isinstance(result, pa.Table), (path, bit)
                assert result.equals(before), (path, bit)
    for leaf in leaves_of(table.schema):
        assert counter[leaf.path, False] > 15 * counter[leaf.path, True], leaf.path


def test_less_more_or_other_bytes_are_not_vouched_for():
    data = written(pa.table(COLUMNS))
    schema, chunks = footer_of(data).schema, chunks_of(data)
    dice = random.Random(3)
    for index in range(len(schema)):
        chunk, column = chunks.column(0, index), schema.column(index)
        pages = pages_of(data, chunk)
        for _ in range(50):
            cut = dice.randrange(len(pages))
            for value in (pages[:cut], pages[cut + 1 :], pages + pages[:cut] + b"\0"):
                assert not are_as_written(memoryview(value), chunk, column)
            assert not are_as_written(memoryview(dice.randbytes(len(pages))), chunk, column)


@pytest.mark.parametrize(
    "options",
    [
        {"write_page_checksum": False},
        {"compression": "snappy"},
        {"data_page_version": "2.0"},
    ],
)
def test_what_checksums_do_not_tell_is_doubtful(options: dict[str, Any]):
    """Pages without a checksum, and forms that we don't write."""
    table = pa.table(COLUMNS)
    assert doubts(written(table)) == []
    assert sorted(doubts(written(table, **options))) == sorted(leaf.path for leaf in leaves_of(table.schema))


def test_dictionaries_of_texts_and_those_given_up_are_doubtful():
    """Only decoding shows how many texts there are, and the encoding of each page."""
    many = 4000
    numbers = {
        "given up": pa.array(range(many), pa.int64()),
        "kept": pa.array([n % 5 for n in range(many)], pa.int64()),
    }
    table = pa.table({**numbers, "text": pa.array(["a", "b"] * (many // 2))})
    data = written(table, use_dictionary=True, compression="zstd", column_encoding=None, dictionary_pagesize_limit=1000)
    assert sorted(doubts(data)) == ["given up", "text"]


def test_another_column_in_the_schema_is_doubtful():
    data = written(pa.table(COLUMNS))
    schema, chunk = footer_of(data).schema, chunks_of(data).column(0, 0)
    pages = memoryview(pages_of(data, chunk))
    leaves = leaves_of(pa.table(COLUMNS).schema)
    fitting = {leaf.path for leaf in leaves if are_as_written(pages, chunk, schema.column(leaf.index))}
    assert fitting == {"constant", "differences", "nothing"}, "those of one type, without a list or struct above"


def test_flat_column_with_another_value_count_is_doubtful():
    data = written(pa.table(COLUMNS))
    schema, chunks = footer_of(data).schema, chunks_of(data)
    for index in range(len(schema)):
        chunk = chunks.column(0, index)
        pages = memoryview(pages_of(data, chunk))
        assert are_as_written(pages, chunk, schema.column(index))
        for rows in (ROWS - 1, ROWS + 1):
            assert not are_as_written(pages, replace(chunk, rows=rows), schema.column(index))


def test_levels_that_the_footer_does_not_tell_are_doubtful():
    data = written(pa.table(COLUMNS))
    schema, chunk = footer_of(data).schema, chunks_of(data).column(0, 0)
    pages = memoryview(pages_of(data, chunk))
    for levels in ((), (ROWS,), (0, ROWS + 1), (0, 0, ROWS)):
        assert not are_as_written(pages, replace(chunk, definition_levels=levels), schema.column(0))


def test_a_chunk_beyond_the_file_is_doubtful_and_not_read():
    table = pa.table({"a": pa.array([1] * ROWS)})
    data = written(table, column_encoding=None, use_dictionary=False, compression="none")
    chunks = chunks_of(data)
    schema, leaves = footer_of(data).schema, leaves_of(table.schema)
    chunks.pages_end = chunks.column(0, 0).start + chunks.column(0, 0).size
    assert list(doubtful(io.BytesIO(data), leaves, chunks, 0, schema)) == []  # type: ignore[arg-type]
    chunks.pages_end -= 1
    assert list(doubtful(io.BytesIO(b""), leaves, chunks, 0, schema)) == list(leaves)  # type: ignore[arg-type]
    assert list(doubtful(io.BytesIO(b""), leaves, chunks, 1, schema)) == list(leaves), "no such row group"  # type: ignore[arg-type]


def test_an_answer_that_is_cut_short_says_nothing_against_pages():
    class Short(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(-1 if size is None else size - 1)

    table = pa.table({"a": pa.array([1] * ROWS)})
    data = written(table, column_encoding=None, use_dictionary=False, compression="none")
    args = leaves_of(table.schema), chunks_of(data), 0, footer_of(data).schema
    with pytest.raises(ConnectionError, match="the store gave"):
        list(doubtful(Short(data), *args))  # type: ignore[arg-type]


def test_columns_are_read_together_if_they_lie_together():
    class Counted(io.BytesIO):
        reads: list[int]

        def read(self, size: int | None = -1) -> bytes:
            self.reads.append(size or 0)
            return super().read(size)

    noise = pa.array([random.Random(n).randbytes(1000) for n in range(20_000)], pa.binary())
    rows = len(noise)
    small = pa.array([1] * rows, pa.int64())
    table = pa.table({"a": small, "b": small, "noise": noise, "c": small})
    data = written(
        table, compression="none", use_dictionary=["a", "b", "c"], column_encoding=None, data_page_size=1 << 20
    )
    stream = Counted(data)
    stream.reads = []
    file = pq.ParquetFile(io.BytesIO(data))
    leaves = [leaf for leaf in leaves_of(file.schema_arrow) if leaf.path != "noise"]
    args = chunks_of(data), 0, file.metadata.schema
    assert list(doubtful(stream, leaves, *args)) == []  # type: ignore[arg-type]
    assert len(stream.reads) == 2
    assert sum(stream.reads) < 10_000
    stream.reads = []
    assert list(doubtful(stream, leaves_of(file.schema_arrow), *args)) == []  # type: ignore[arg-type]
    assert len(stream.reads) == 3
    assert max(stream.reads) > RUN_BYTES, "a chunk that is larger than a run is read alone"
