"""Reading our own and foreign files."""

from __future__ import annotations

import gc
import io
import os
import re
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.errors import BadSegment, ObjectMissing, StorageUnavailable
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import RowRange, SegmentLayout, SegmentOrigin
from archiver.storage.spool_file import SpoolFile
from catalog.digests import DIGEST_ALGORITHM
from catalog.model import DataFileInfo
from schema_mapping.columns.fixed import EVENT_TIMESTAMP_ID, OFFSET_ID, RAW_TIMESTAMP_ID
from tests.support.storage.footer_flips import footer_start
from tests.support.storage.parquet_pages import page_headers, with_other_count, without_page

OBJECTS = ObjectStore.of({})
ORIGIN = SegmentOrigin(cluster_id="c", topic="t", topic_id="", partition=0, start_offset=0, end_offset=10)
GROUPS = 4
MANY = 20_000


def finished(archive: Any, path: Path, *batches: pa.RecordBatch) -> str:
    layout = SegmentLayout.of_mapping(archive.rows, {})
    writer = ParquetFormat().start(SpoolFile.create(path), layout)
    for batch in batches:
        writer.write(batch)
    writer.close(origin=ORIGIN, path="x")
    return path.as_uri()


@pytest.fixture
def grouped(archive: Any, tmp_path: Path):
    path = tmp_path / "grouped.parquet"
    with pq.ParquetWriter(path, archive.schema) as writer:
        for group in range(GROUPS):
            at = group * 3_600_000
            rows = [
                archive.row(offset=group * 100, timestamp=at),
                archive.row(offset=group * 100 + 10, timestamp=at + 5),
            ]
            writer.write_batch(archive.batch(rows))
    return path.as_uri()


def described(path: Path) -> DataFileInfo:
    return ParquetFormat().describe(OBJECTS, path.as_uri(), table_properties={})


def without_null_counts(data: bytes) -> bytes:
    start = footer_start(data)
    counts = re.compile(rb"(?<=\x1c)\x36(?=.[\0(])|\x16(?=.\([\x04\x08])", re.DOTALL)
    hurt = counts.sub(lambda match: bytes((match[0][0] ^ 2,)), data[start:])
    footer = pq.read_metadata(io.BytesIO(data[:start] + hurt))
    group = footer.row_group(0)
    statistics = [group.column(value).statistics for value in range(footer.num_columns)]
    assert not any(statistic.has_null_count for statistic in statistics)
    assert any(statistic.has_min_max for statistic in statistics)
    return data[:start] + hurt


def indexes(path: str, rows: RowRange) -> list[int]:
    with ParquetFormat().open(OBJECTS, path) as reader:
        return [block.index for block in reader.blocks(rows)]


def test_metadata_comes_back(archive: Any, tmp_path: Path):
    path = finished(archive, tmp_path / "a.parquet", archive.batch([archive.row(offset=1)]))
    with ParquetFormat().open(OBJECTS, path) as reader:
        assert reader.metadata.origin == ORIGIN
        assert reader.metadata.mapping == archive.mapping
        assert (reader.metadata.rows, reader.metadata.schema_version, reader.metadata.format_version) == (1, 1, 1)
        assert reader.schema.field("kafka").metadata[b"PARQUET:field_id"] == b"4"


def test_a_rewritten_file_says_only_its_rows(grouped: str):
    with ParquetFormat().open(OBJECTS, grouped) as reader:
        assert reader.metadata.rows == 2 * GROUPS
        assert reader.metadata.origin is None


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        (RowRange(partition=0), [0, 1, 2, 3]),
        (RowRange(partition=1), []),
        (RowRange(partition=0, start_offset=11), [1, 2, 3]),
        (RowRange(partition=0, start_offset=10, end_offset=200), [0, 1]),
        (RowRange(partition=0, end_offset=201), [0, 1, 2]),
        (RowRange(partition=0, start_offset=5, end_offset=5), [0]),
        (RowRange(partition=0, start_offset=311), []),
        (RowRange(partition=0, min_timestamp=5), [0, 1, 2, 3]),
        (RowRange(partition=0, min_timestamp=6), [1, 2, 3]),
        (RowRange(partition=0, min_timestamp=3 * 3_600_000 + 6), []),
    ],
)
def test_blocks_that_cannot_hold_the_rows_are_left_out(grouped: str, wanted: RowRange, kept: list[int]):
    assert indexes(grouped, wanted) == kept


def test_without_statistics_every_block_is_kept(archive: Any, tmp_path: Path):
    path = tmp_path / "bare.parquet"
    pq.write_table(pa.Table.from_batches([archive.batch([archive.row(offset=1)])]), path, write_statistics=False)
    assert indexes(path.as_uri(), RowRange(partition=9, start_offset=50, min_timestamp=2**50)) == [0]


def test_what_a_footer_does_not_say_of_nulls_is_not_told(archive: Any, tmp_path: Path):
    """Bounds without a null count neither exclude rows nor give counts."""
    path = tmp_path / "uncounted.parquet"
    rows = [archive.row(offset=value, timestamp=10, value=b"v" if value else None) for value in range(3)]
    pq.write_table(pa.Table.from_batches([archive.batch(rows)]), path, store_schema=False)
    counted = described(path)
    assert (counted.raw_values, counted.null_value_counts[EVENT_TIMESTAMP_ID]) == (2, 0)
    late = RowRange(partition=0, min_timestamp=11)
    assert indexes(path.as_uri(), late) == []
    path.write_bytes(without_null_counts(path.read_bytes()))
    assert indexes(path.as_uri(), late) == [0]
    uncounted = described(path)
    assert (uncounted.rows, uncounted.raw_values, uncounted.null_value_counts) == (3, 0, {})
    with ParquetFormat().open(OBJECTS, path.as_uri()) as reader:
        assert reader.set_counts(reader.blocks()[0], frozenset({RAW_TIMESTAMP_ID, EVENT_TIMESTAMP_ID})) == {}
        assert [batch.num_rows for batch in reader.read(reader.blocks()[0])] == [3]


@pytest.mark.parametrize(
    "late", [{"timestamp_type": 1, "append_timestamp": 9_000}, {"timestamp": None, "raw_timestamp": 9_000}]
)
def test_every_source_of_a_timestamp_keeps_a_block(archive: Any, tmp_path: Path, late: dict[str, Any]):
    path = finished(
        archive, tmp_path / "a.parquet", archive.batch([archive.row(**{"offset": 1, "timestamp": 10} | late)])
    )
    assert indexes(path, RowRange(partition=0, min_timestamp=9_000)) == [0]
    assert indexes(path, RowRange(partition=0, min_timestamp=9_001)) == []


def test_blocks_know_where_they_stand(grouped: str):
    with ParquetFormat().open(OBJECTS, grouped) as reader:
        block = reader.blocks(RowRange(partition=0, start_offset=200, end_offset=300))[0]
        assert (block.index, block.first_row, block.rows) == (2, 4, 2)
        (batch,) = reader.read(block)
        assert batch.column("kafka").field("offset").to_pylist() == [200, 210]


def test_columns_are_asked_for_by_id(grouped: str):
    with ParquetFormat().open(OBJECTS, grouped) as reader:
        (block, *_) = reader.blocks(RowRange(partition=0))
        (batch,) = reader.read(block, frozenset({11, 1, 99_999}))
    assert batch.schema.names == ["key", "kafka"]
    assert [field.name for field in batch.schema.field("kafka").type] == ["offset"]


def test_large_rows_come_in_small_batches(archive: Any, tmp_path: Path):
    rows = [archive.row(offset=i, value=bytes([i]) * (4 << 20)) for i in range(12)]
    path = finished(archive, tmp_path / "a.parquet", archive.batch(rows))
    with ParquetFormat(compression_level=1).open(OBJECTS, path) as reader:
        (block,) = reader.blocks(RowRange(partition=0))
        batches = list(reader.read(block))
    assert [batch.num_rows for batch in batches] == [3, 3, 3, 3]


@pytest.fixture
def in_use() -> Iterator[Callable[[], int]]:
    def counted() -> int:
        gc.collect()
        return int(pa.total_allocated_bytes()) + tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        yield counted
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("reads_all", [False, True], ids=["in parts", "at once"])
def test_a_closed_file_keeps_none_of_its_bytes(
    archive: Any, tmp_path: Path, in_use: Callable[[], int], *, reads_all: bool
):
    rows = [archive.row(offset=i, value=os.urandom(1 << 20)) for i in range(6)]
    path = finished(archive, tmp_path / "a.parquet", archive.batch(rows))
    before = in_use()
    reader = ParquetFormat().open(OBJECTS, path, reads_all=reads_all)
    kept = result = 0
    for block in reader.blocks():
        for batch in reader.read(block):
            result, kept = result + batch.num_rows, max(kept, in_use())
        del batch
    assert (result, kept - before > 6 << 20) == (len(rows), True)
    reader.close()
    assert in_use() - before < 1 << 20
    assert (reader.metadata.origin, [block.rows for block in reader.blocks()]) == (ORIGIN, [len(rows)])
    with pytest.raises(ValueError, match="closed"):
        next(reader.read(block))
    reader.close()


def test_a_nested_column_of_more_than_two_gibibytes_is_readable(archive: Any, tmp_path: Path):
    """One row group of a foreign writer; read whole, pyarrow refuses it."""
    path = tmp_path / "huge.parquet"
    part = pa.Table.from_batches([archive.batch([archive.row(offset=i, value=bytes(40 << 20)) for i in range(6)])])
    table = pa.concat_tables([part] * 9)
    bounds = ["kafka.partition", "kafka.offset"]
    pq.write_table(table, path, write_batch_size=1, use_dictionary=False, compression="zstd", write_statistics=bounds)
    with ParquetFormat().open(OBJECTS, path.as_uri()) as reader:
        (block,) = reader.blocks(RowRange(partition=0))
        total = sum(batch.column("val").nbytes for batch in reader.read(block))
    assert total > 2 << 30


def test_a_newer_format_is_refused(archive: Any, tmp_path: Path):
    path = tmp_path / "new.parquet"
    table = pa.Table.from_batches([archive.batch([archive.row(offset=1)])])
    pq.write_table(table.replace_schema_metadata({"archiver.format-version": "2"}), path)
    with pytest.raises(BadSegment, match=r"upgrade the archiver.*new\.parquet"):
        ParquetFormat().open(OBJECTS, path.as_uri())


def test_a_damaged_footer_is_named(archive: Any, tmp_path: Path):
    path = tmp_path / "old.parquet"
    table = pa.Table.from_batches([archive.batch([archive.row(offset=1)])])
    pq.write_table(table.replace_schema_metadata({"archiver.format-version": "1", "archiver.topic": "t"}), path)
    with pytest.raises(BadSegment, match="incomplete or damaged"):
        ParquetFormat().open(OBJECTS, path.as_uri())


@pytest.mark.parametrize(("algorithm", "known"), [(DIGEST_ALGORITHM, "0" * 31 + "a"), ("another", None), (None, None)])
def test_only_a_digest_of_the_known_algorithm_is_given(
    archive: Any, tmp_path: Path, algorithm: str | None, known: str | None
):
    path = finished(archive, tmp_path / "a.parquet", archive.batch([archive.row(offset=1)]))
    table = pq.read_table(path.removeprefix("file://"))
    pairs = pq.read_metadata(path.removeprefix("file://")).metadata | {b"archiver.digest": b"0" * 31 + b"a"}
    pairs |= {} if algorithm is None else {b"archiver.digest-algorithm": algorithm.encode()}
    changed = tmp_path / "b.parquet"
    pq.write_table(table.replace_schema_metadata(pairs), changed)
    with ParquetFormat().open(OBJECTS, changed.as_uri()) as reader:
        assert reader.metadata.digest == known


@pytest.mark.parametrize("data", [b"", b"PAR1 not parquet at all PAR1", b"x" * 100])
def test_what_is_not_parquet_is_named(tmp_path: Path, data: bytes):
    path = tmp_path / "bad.parquet"
    path.write_bytes(data)
    with pytest.raises(BadSegment, match=r"bad\.parquet"):
        ParquetFormat().open(OBJECTS, path.as_uri())


def test_a_damaged_page_is_named(archive: Any, tmp_path: Path):
    rows = archive.batch([archive.row(offset=i, value=b"%d" % i * 50) for i in range(100)])
    local = tmp_path / "torn.parquet"
    path = finished(archive, local, rows)
    chunk = pq.read_metadata(local).row_group(0).column(1)
    data = bytearray(local.read_bytes())
    middle = chunk.data_page_offset + chunk.total_compressed_size // 2
    data[middle : middle + 20] = b"\xaa" * 20
    local.write_bytes(data)
    with ParquetFormat().open(OBJECTS, path) as reader, pytest.raises(BadSegment, match=r"torn\.parquet"):
        list(reader.read(reader.blocks(RowRange(partition=0))[0]))


def test_a_flipped_bit_in_an_uncompressed_page_is_found(archive: Any, tmp_path: Path):
    """Only the page's checksum can show it."""
    local = tmp_path / "flipped.parquet"
    table = pa.Table.from_batches([archive.batch([archive.row(offset=1, value=b"a very particular value")])])
    pq.write_table(
        table, local, compression="none", use_dictionary=False, write_page_checksum=True, write_page_index=True
    )
    data = local.read_bytes()
    local.write_bytes(data.replace(b"a very particular", b"a very pArticular", 1))
    with ParquetFormat().open(OBJECTS, local.as_uri()) as reader, pytest.raises(BadSegment, match=r"flipped\.parquet"):
        list(reader.read(reader.blocks(RowRange(partition=0))[0]))


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(ObjectMissing, match=r"gone\.parquet"):
        ParquetFormat().open(OBJECTS, (tmp_path / "gone.parquet").as_uri())


@pytest.mark.parametrize("reads_all", [False, True])
def test_an_answer_that_is_cut_short_is_no_damage(archive: Any, tmp_path: Path, *, reads_all: bool):
    path = tmp_path / "a"
    finished(archive, path, archive.batch([archive.row(offset=1)]))

    class Cut(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(size)[:-1]

    class CuttingStore(ObjectStore):
        def open(self, _: str) -> Any:
            return Cut(path.read_bytes())

    with pytest.raises(StorageUnavailable):
        ParquetFormat().open(CuttingStore.of({}), path.as_uri(), reads_all=reads_all)


def test_rows_that_are_fewer_than_the_footer_says_are_not_given(archive: Any, tmp_path: Path):
    local = tmp_path / "fewer.parquet"
    path = finished(archive, local, archive.batch([archive.row(offset=value) for value in range(50)]))
    data = local.read_bytes()
    (page,) = [header for header in page_headers(data) if header.is_data and header.column == "kafka.offset"]
    fewer = data[page.start : page.end].replace(b"\x15\x64", b"\x15\x60")
    assert fewer != data[page.start : page.end]
    local.write_bytes(data[: page.start] + fewer + data[page.end :])
    with ParquetFormat().open(OBJECTS, path) as reader:
        rows = reader.read(reader.blocks()[0], frozenset({OFFSET_ID}))
        with pytest.raises(BadSegment, match="as many values"):
            next(rows)


@pytest.mark.parametrize("damaged", [without_page, partial(with_other_count, bit=0)], ids=["left out", "counted"])
def test_pages_are_counted_beside_a_lookalike_column_name(tmp_path: Path, damaged: Any):
    """A foreign `val.total` beside `val` with its member `total`."""
    total, theirs = (pa.field(value, pa.int64()) for value in ("total", "val.total"))
    values = pa.StructArray.from_arrays([pa.array(range(MANY))], fields=[total])
    table = pa.table([values, pa.array([7] * MANY)], pa.schema([pa.field("val", values.type), theirs]))
    out = io.BytesIO()
    pq.write_table(table, out, data_page_size=4096, write_batch_size=256, use_dictionary=False)
    data = out.getvalue()
    pages = [header for header in page_headers(data) if header.is_data]
    path = tmp_path / "theirs.parquet"
    path.write_bytes(damaged(data, pages[3]))
    with ParquetFormat().open(OBJECTS, path.as_uri()) as reader:
        (block,) = reader.blocks()
        with pytest.raises(BadSegment, match="as many values as the file's footer"):
            next(reader.read(block))
