"""Rows read alone, also by damaged indexes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.errors import StorageError
from archiver.storage.metered import ReadMeter
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.parquet.compact_thrift import ThriftError
from archiver.storage.parquet.file_end import FileEnd
from archiver.storage.parquet.footer_chunks import FooterChunks
from archiver.storage.parquet.leaves import leaves_and_paths
from archiver.storage.parquet.page_locations import IndexedChunk
from archiver.storage.segment import SegmentLayout
from archiver.storage.spool_file import SpoolFile
from tests.support.storage.filled_rows import rows_of

ROWS = 45_000
KEY_ID, VALUE_ID = 100, 101
IDS = frozenset({1, 2, 3, 4})


def struct_of(rows: pa.RecordBatch, name: str, values: list[bytes | None]) -> pa.StructArray:
    kind = rows.schema.field(name).type
    return pa.StructArray.from_arrays(
        [pa.array(values, pa.binary())], fields=list(kind), mask=pa.array([value is None for value in values])
    )


def varied(archive: Any) -> pa.RecordBatch:
    rows = rows_of(archive, ROWS, start=0)
    keys = [b"key-%08d" % (number * 7919 % ROWS) if number % 11 else None for number in range(ROWS)]
    values = [b"%d" % number * (number % 50) if number % 13 else None for number in range(ROWS)]
    kind = rows.schema.field("headers").type
    some = archive.batch(
        archive.row(offset=0, headers=[(b"h%d" % at, b"v" * at) for at in range(count)]) for count in range(4)
    )
    headers = some.column("headers").cast(kind).take(pa.array(np.arange(ROWS) % 4))
    made = {"key": struct_of(rows, "key", keys), "val": struct_of(rows, "val", values), "headers": headers}
    return pa.RecordBatch.from_arrays(
        [made.get(name, rows.column(name)) for name in rows.schema.names], schema=rows.schema
    )


@pytest.fixture
def written(tmp_path: Path, archive: Any) -> Path:
    path = tmp_path / "rows.parquet"
    with closing(SpoolFile.create(path)) as file:
        writer = ParquetFormat().start(file, SegmentLayout.of_mapping(archive.rows, {}, {KEY_ID: 0.01}))
        writer.write(varied(archive))
        writer.close(origin=None, path=path.as_uri())
    return path


@pytest.mark.parametrize(
    "places", [[0], [44_999], [19_999, 20_000], [5, 4_000, 21_000, 44_998], [*range(0, 45_000, 997)]]
)
@pytest.mark.parametrize("ids", [IDS, frozenset({KEY_ID}), frozenset({11, VALUE_ID, 3})])
def test_rows_alone_equal_rows_of_the_block(written: Path, places: list[int], ids: frozenset[int]) -> None:
    meter, rows = ReadMeter(), np.array(places, np.int64)
    with ParquetFormat().open(ObjectStore(meter=meter), written.as_uri()) as reader:
        (block,) = reader.blocks()
        opened = meter.size_bytes
        alone = reader.take(block, rows, ids)
        read = meter.size_bytes - opened
        whole = pa.Table.from_batches(reader.read(block, ids)).take(pa.array(rows))
    assert pa.Table.from_batches([alone]).select(whole.column_names).equals(whole)
    if len(places) == 1:
        assert read < written.stat().st_size / 2


def test_a_row_takes_few_requests(written: Path) -> None:
    meter = ReadMeter()
    with ParquetFormat().open(ObjectStore(meter=meter), written.as_uri()) as reader:
        (block,) = reader.blocks()
        assert meter.requests == 2, "open, and the end of the file with its footer and indexes"
        reader.take(block, np.array([30_000]), IDS)
    assert meter.requests <= 2 + 8


def test_filters_rule_out_values_by_one_small_read(written: Path, archive: Any) -> None:
    keys = [key for key in varied(archive).column("key").field(0).to_pylist() if key is not None]
    meter = ReadMeter()
    with ParquetFormat().open(ObjectStore(meter=meter), written.as_uri()) as reader:
        (block,) = reader.blocks()
        assert all(reader.may_contain(block, KEY_ID, key) for key in keys[:500])
        before = meter.size_bytes, meter.requests
        wrong = [reader.may_contain(block, KEY_ID, b"nothing-%d" % number) for number in range(1_000)]
        assert sum(map(bool, wrong)) < 50
        assert meter.size_bytes - before[0] <= 4_096 * 1_000
        assert reader.may_contain(block, VALUE_ID, b"x") is None, "it has no filter"
        assert reader.may_contain(block, KEY_ID, 7) is None, "no plain value of the column"


def test_a_damaged_index_never_gives_other_rows(written: Path, tmp_path: Path) -> None:
    content = bytearray(written.read_bytes())
    places = np.array([7, 20_001, 33_333])
    with ParquetFormat().open(ObjectStore(), written.as_uri()) as reader:
        (block,) = reader.blocks()
        whole = reader.take(block, places, IDS)
    start, end = index_of(bytes(content))
    path = tmp_path / "damaged.parquet"
    refused = 0
    for at in range(start, end):
        for bit in (0, 3, 7):
            damaged = bytearray(content)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            with ParquetFormat().open(ObjectStore(), path.as_uri()) as reader:
                (block,) = reader.blocks()
                try:
                    assert same_rows(reader.take(block, places, frozenset({KEY_ID, 11})), whole), (at, bit)
                except StorageError:
                    refused += 1
    assert refused == 0, "the pages are sound, so the row group can be read without its index"


def same_rows(taken_rows: pa.RecordBatch, whole: pa.RecordBatch) -> bool:
    keys = taken_rows.column("key").to_pylist() == whole.column("key").to_pylist()
    offsets = [row["offset"] for row in taken_rows.column("kafka").to_pylist()]
    return keys and offsets == [row["offset"] for row in whole.column("kafka").to_pylist()]


def index_of(content: bytes) -> tuple[int, int]:
    end = FileEnd.read(pa.BufferReader(content))
    with pq.ParquetFile(pa.BufferReader(content)) as file:
        leaves, _ = leaves_and_paths(file.schema_arrow)
    leaf = next(leaf for leaf in leaves if leaf.field_id == KEY_ID)
    chunk = IndexedChunk.of(FooterChunks(end), 0, leaf)
    return chunk.index_start, chunk.index_start + chunk.index_size


def test_files_of_other_writers_are_read_whole(tmp_path: Path, archive: Any) -> None:
    path = tmp_path / "foreign.parquet"
    pq.write_table(pa.Table.from_batches([varied(archive)]), path, write_page_index=True)
    with ParquetFormat().open(ObjectStore(), path.as_uri()) as reader:
        (block,) = reader.blocks()
        taken = reader.take(block, np.array([3, 44_000]), IDS)
        assert [row["offset"] for row in taken.column("kafka").to_pylist()] == [3, 44_000]
        assert reader.may_contain(block, KEY_ID, b"x") is None


def test_a_column_that_is_no_part_of_the_footer_has_no_index(written: Path) -> None:
    end = FileEnd.read(pa.BufferReader(written.read_bytes()))
    with pytest.raises(ThriftError):
        FooterChunks(end).fields(0, 9_999)
