"""Column chunks, as pyarrow finds them."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.storage.parquet.compact_thrift import ThriftError
from archiver.storage.parquet.file_end import FileEnd
from archiver.storage.parquet.footer_chunks import FooterChunks

TABLE = pa.table(
    {
        "number": pa.array([1, None, 3] * 40),
        "text": pa.array(["a", None, "c"] * 40),
        "listed": pa.array([[1, 2], [], None] * 40),
        "fixed": pa.array([bytes(16)] * 120, pa.binary(16)),
        "always": pa.array([True, False, True] * 40),
    },
    pa.schema(
        [
            ("number", pa.int64()),
            ("text", pa.string()),
            ("listed", pa.list_(pa.int32())),
            ("fixed", pa.binary(16)),
            pa.field("always", pa.bool_(), nullable=False),
        ]
    ),
)
ROWS_OF_A_GROUP = 50


def written(table: pa.Table = TABLE, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **{"row_group_size": ROWS_OF_A_GROUP, "compression": "zstd"} | options)
    return out.getvalue()


def chunks_of(data: bytes) -> FooterChunks:
    return FooterChunks(FileEnd.read(io.BytesIO(data)))


def test_it_says_what_pyarrow_says():
    data = written()
    footer, chunks = pq.read_metadata(io.BytesIO(data)), chunks_of(data)
    assert footer.num_row_groups > 1
    for group in range(footer.num_row_groups):
        for index in range(footer.num_columns):
            result, events = chunks.column(group, index), footer.row_group(group).column(index)
            assert result.rows == footer.row_group(group).num_rows
            assert result.physical_type == events.physical_type
            assert (result.values, result.size) == (events.num_values, events.total_compressed_size)
            assert result.unpacked_size == events.total_uncompressed_size
            assert result.start == (events.dictionary_page_offset or events.data_page_offset)
            assert len(result.encodings) == len(set(events.encodings))
            assert result.is_of(footer.schema.column(index))


def test_a_footer_larger_than_the_first_read_is_read_whole():
    wide = pa.table({f"a column with the number {n}": [n] for n in range(600)})
    data = written(wide)
    chunks = chunks_of(data)
    assert len(data) - chunks.pages_end > 64 << 10
    assert chunks.column(0, 599).values == 1


def test_columns_and_groups_that_are_not_there_are_told():
    chunks = chunks_of(written())
    for group, index in ((9, 0), (0, 9)):
        with pytest.raises(ThriftError):
            chunks.column(group, index)


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"\xff" * 100, b"PAR1" + bytes(4) + b"PAR1", b"\x19\xfc" * 9 + b"\x12\0\0\0PAR1"]
)
def test_what_is_no_footer_is_told(data: bytes):
    with pytest.raises(ThriftError):
        chunks_of(data).column(0, 0)
