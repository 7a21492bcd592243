"""Written files, in other readers."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.errors import StorageError
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import SegmentLayout, SegmentOrigin
from archiver.storage.spool_file import SpoolFile
from catalog.model import DataFileInfo
from catalog.partitioning import PartitionTuple
from tests.support.storage.filled_rows import rows_of
from tests.support.storage.parquet_pages import page_sizes

ORIGIN = SegmentOrigin(
    cluster_id="c",
    topic="t",
    topic_id="6f9619ff-8b86-d011-b42d-00c04fc964ff",
    partition=3,
    start_offset=10,
    end_offset=5000,
)


def layout_of(archive: Any) -> SegmentLayout:
    return SegmentLayout.of_mapping(archive.rows, archive.properties)


def write(archive: Any, folder: Path, *batches: pa.RecordBatch, name: str = "a") -> tuple[Path, DataFileInfo]:
    path = folder / f"{name}.parquet"
    writer = ParquetFormat().start(SpoolFile.create(path), layout_of(archive))
    for batch in batches:
        writer.write(batch)
    return path, writer.close(origin=ORIGIN, path=f"s3://lake/{name}.parquet", partition=PartitionTuple.of_time(19_000))


def test_rows_come_back_as_they_went_in(archive: Any, tmp_path: Path):
    batch = archive.batch(
        [
            archive.row(offset=1, key=None, value=None),
            archive.row(offset=5, key=b"", value=b"", headers=[(b"a", None), (b"a", b""), (b"\xff", b"x")]),
            archive.row(offset=6, key=b"\x00\xff", value=b"x" * 300, timestamp=None),
        ]
    )
    path, _ = write(archive, tmp_path, batch)
    assert pq.read_table(path).to_pylist() == batch.to_pylist()


def test_duckdb_reads_every_column(archive: Any, tmp_path: Path):
    path, _ = write(archive, tmp_path, rows_of(archive, 5000))
    query = f"""
        select count(*), min(kafka."offset"), max(kafka."offset"), sum(kafka."offset"), count(distinct key.__raw__),
               max(epoch_ms(kafka.event_timestamp)), sum(len(headers))
        from '{path}' where kafka.partition = 3"""
    assert duckdb.sql(query).fetchone() == (5000, 10, 5009, sum(range(10, 5010)), 7, 5999, 0)


def test_every_field_has_its_id(archive: Any, tmp_path: Path):
    path, _ = write(archive, tmp_path, rows_of(archive, 1))
    ids = duckdb.sql(f"select name, field_id from parquet_schema('{path}') where field_id is not null").fetchall()
    assert ("__raw_key__", 8) in ids
    assert ("element", 5) in ids
    assert ("offset", 11) in ids
    assert len(ids) == len(archive.schema) + 2 + 4 + 15


def test_columns_are_compressed_indexed_sorted_and_encoded(archive: Any, tmp_path: Path):
    path, _ = write(archive, tmp_path, rows_of(archive, 5000))
    group = pq.read_metadata(path).row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert {columns[path].compression for path in ("key.__raw__", "kafka.offset", "kafka.event_timestamp")} == {"ZSTD"}
    assert columns["kafka.partition"].compression == "UNCOMPRESSED", "one value leaves nothing to compress"
    filled = {path: column for path, column in columns.items() if column.num_values}
    assert all(column.has_offset_index for column in filled.values())
    without = {path for path, column in filled.items() if not column.has_column_index}
    assert without == {path for path in filled if path.startswith("headers.")}, "nobody prunes by a header's extremes"
    assert "DELTA_BINARY_PACKED" in columns["kafka.offset"].encodings
    assert "RLE_DICTIONARY" in columns["kafka.partition"].encodings
    paths = list(columns)
    assert [paths[column.column_index] for column in group.sorting_columns] == ["kafka.partition", "kafka.offset"]
    constant = sum(
        column.total_compressed_size
        for path, column in columns.items()
        if path.startswith("kafka.") and "off" not in path and "event" not in path
    )
    assert constant < 2_000, "what is constant over a file costs next to nothing"
    assert columns["kafka.offset"].total_compressed_size < 1_000


def test_footer_names_the_origin(archive: Any, tmp_path: Path):
    path, _ = write(archive, tmp_path, rows_of(archive, 1))
    pairs = pq.read_metadata(path).metadata
    assert {key.decode(): value.decode() for key, value in pairs.items()} == {
        "archiver.format-version": "1",
        "archiver.cluster-id": "c",
        "archiver.topic": "t",
        "archiver.topic-id": "6f9619ff-8b86-d011-b42d-00c04fc964ff",
        "archiver.partition": "3",
        "archiver.start-offset": "10",
        "archiver.end-offset": "5000",
        "archiver.schema-version": "1",
        "archiver.mapping": archive.mapping,
    }


def test_footer_has_the_digest_with_its_algorithm(archive: Any, tmp_path: Path):
    writer = ParquetFormat().start(SpoolFile.create(tmp_path / "a.parquet"), layout_of(archive))
    writer.write(rows_of(archive, 1))
    info = writer.close(origin=ORIGIN, path="s3://lake/a.parquet", digest="0" * 30 + "7f")
    pairs = pq.read_metadata(tmp_path / "a.parquet").metadata
    assert info.digest == "0" * 30 + "7f"
    assert pairs[b"archiver.digest"] == b"0" * 30 + b"7f"
    assert pairs[b"archiver.digest-algorithm"] == b"record-v1-murmur3-x64-128"


def test_metrics_follow_the_tables_modes(archive: Any, tmp_path: Path):
    path, info = write(archive, tmp_path, rows_of(archive, 3), archive.batch([archive.row(offset=13, value=None)]))
    assert (info.rows, info.path, info.partition.time_value) == (4, "s3://lake/a.parquet", 19_000)
    assert info.size_bytes == path.stat().st_size
    assert info.lower_bounds == {
        10: struct.pack("<i", 0),
        11: struct.pack("<q", 10),
        12: struct.pack("<q", 1_000_000),
        13: struct.pack("<q", 1_700_000_000_000_000),
        14: struct.pack("<q", 0),
    }
    assert info.upper_bounds[11] == struct.pack("<q", 13)
    assert info.upper_bounds[12] == struct.pack("<q", 1_700_000_000_000_000)
    assert info.null_value_counts == dict.fromkeys((10, 11, 12, 13, 14), 0) | {17: 4, 18: 4}
    assert set(info.value_counts) == set(info.null_value_counts)
    assert set(info.column_sizes) >= {6, 7, 8, 24, 100, 101}
    assert info.split_offsets == (4,)
    assert info.raw_values == 3
    assert (info.min_timestamp, info.max_timestamp) == (1_000, 1_700_000_000_000)
    assert DataFileInfo.from_json(info.to_json()) == info


def test_timestamps_are_those_a_consumer_sees(archive: Any, tmp_path: Path):
    rows = [
        archive.row(offset=10, timestamp=5_000, timestamp_type=1, append_timestamp=9_000),
        archive.row(offset=11, timestamp=None, raw_timestamp=-(2**60)),
        archive.row(offset=12, timestamp=None),
    ]
    _, info = write(archive, tmp_path, archive.batch(rows))
    assert (info.min_timestamp, info.max_timestamp) == (-(2**60), 9_000)
    _, silent = write(archive, tmp_path, archive.batch(rows[2:]), name="silent")
    assert (silent.min_timestamp, silent.max_timestamp) == (None, None)


def test_row_groups_end_by_rows(archive: Any, tmp_path: Path):
    batch = rows_of(archive, 50_000)
    path, info = write(archive, tmp_path, *[batch] * 6)
    footer = pq.read_metadata(path)
    assert max(footer.row_group(i).num_rows for i in range(footer.num_row_groups)) <= 128 << 10
    assert footer.num_rows == 300_000
    assert len(info.split_offsets) == footer.num_row_groups == 3


def test_row_groups_end_by_bytes_and_pages_by_value(archive: Any, tmp_path: Path):
    blob = random.Random(1).randbytes(5 << 20)
    batches = [rows_of(archive, 2_000)] + [
        archive.batch([archive.row(offset=20 + i, value=blob[i:]), archive.row(offset=2000 + i, value=b"small")])
        for i in range(40)
    ]
    path, info = write(archive, tmp_path, *batches)
    footer = pq.read_metadata(path)
    sizes = [footer.row_group(i).total_byte_size for i in range(footer.num_row_groups)]
    assert max(sizes) <= (64 << 20) + 4096
    assert len(sizes) < 6
    pages = page_sizes(path, "val.__raw__")
    assert max(pages) <= (5 << 20) + 64
    assert len(pages) >= 40, "no two of the large values share a page"
    assert info.rows == 2_080
    assert info.size_bytes > 190 << 20


def test_five_hundred_values_of_five_megabytes(archive: Any, tmp_path: Path):
    """pyarrow's defaults fail here: a page would pass 2 GiB."""
    value = bytes(5 << 20)
    path = tmp_path / "big.parquet"
    writer = ParquetFormat(compression_level=1).start(SpoolFile.create(path), layout_of(archive))
    for i in range(500):
        writer.write(archive.batch([archive.row(offset=10 + i, value=value)]))
    info = writer.close(origin=ORIGIN, path="s3://lake/big.parquet")
    assert info.rows == 500
    assert max(page_sizes(path, "val.__raw__")) <= (5 << 20) + 64


@pytest.mark.parametrize("size", [50, 900, 3_000, 90_000, 700_000, 3_000_000])
def test_pages_stay_within_a_mebibyte_or_one_value(archive: Any, tmp_path: Path, size: int):
    source = random.Random(size).randbytes(size + 4_096)
    count = min(20_000, 30_000_000 // size)
    rows = archive.batch(
        archive.row(
            offset=10 + i,
            key=source[i % 4_000 :][: size // 2],
            value=source[i % 4_096 :][:size],
            headers=[(b"h", source[i % 4_096 :][: size // 3])],
        )
        for i in range(count)
    )
    path, _ = write(archive, tmp_path, rows)
    for column in ("key.__raw__", "val.__raw__", "headers.list.element.value"):
        assert max(page_sizes(path, column)) <= max(1 << 20, size + 64), column


@pytest.mark.parametrize("greatest", [b"z", b"\xff"])
def test_bounds_are_dropped_rather_than_narrowed(archive: Any, tmp_path: Path, greatest: bytes):
    """No short value is above the greatest bytes. Bounds of the other row groups alone would be wrong."""
    archive.properties["write.metadata.metrics.column.key.__raw__"] = "truncate(16)"
    archive.properties["write.metadata.metrics.column.val.__raw__"] = "truncate(4)"
    archive.properties["write.metadata.metrics.column.headers.element.key"] = "counts"
    long = archive.batch(
        [archive.row(offset=1, key=greatest * 10_000, value=b"\xff\xff\xff\xff\xff", headers=[(b"h", None)])]
    )
    filler = rows_of(archive, 131_071, start=2, value=b"abcdefgh")
    path, info = write(archive, tmp_path, long, filler, rows_of(archive, 10, start=200_000))
    assert pq.read_metadata(path).num_row_groups == 2
    assert (100 in info.lower_bounds) == (greatest == b"z")
    assert info.upper_bounds.get(100) == (b"z" * 15 + b"{" if greatest == b"z" else None)
    assert info.lower_bounds[101] == b"abcd"
    assert 101 not in info.upper_bounds, "nothing of four bytes is above four times 0xff"
    assert info.value_counts[6] == 131_082
    assert info.null_value_counts[6] == 131_081, "rows with no header"


def test_size_grows_and_tells_when_to_rotate(archive: Any, tmp_path: Path):
    source = random.Random(2)
    writer = ParquetFormat().start(SpoolFile.create(tmp_path / "a.parquet"), layout_of(archive))
    sizes = []
    for i in range(120):
        writer.write(archive.batch(archive.row(offset=i * 10 + j, value=source.randbytes(60_000)) for j in range(10)))
        sizes.append(writer.size_bytes)
    assert sizes == sorted(sizes)
    info = writer.close(origin=ORIGIN, path="s3://lake/a")
    assert sizes[-1] == pytest.approx(info.size_bytes, rel=0.1)


def test_rows_of_other_columns_are_refused(archive: Any, tmp_path: Path):
    writer = ParquetFormat().start(SpoolFile.create(tmp_path / "a.parquet"), layout_of(archive))
    with pytest.raises(StorageError, match="columns"):
        writer.write(pa.record_batch({"x": [1]}))
    writer.abort()
    assert not (tmp_path / "a.parquet").exists()


def test_abort_after_close_keeps_the_file(archive: Any, tmp_path: Path):
    path = tmp_path / "a.parquet"
    writer = ParquetFormat().start(SpoolFile.create(path), layout_of(archive))
    writer.write(rows_of(archive, 1))
    writer.close(origin=ORIGIN, path="s3://lake/a")
    writer.abort()
    assert path.exists()


def test_an_existing_spool_file_is_never_overwritten(archive: Any, tmp_path: Path):
    path, _ = write(archive, tmp_path, rows_of(archive, 1))
    with pytest.raises(FileExistsError):
        SpoolFile.create(path)


def test_batches_of_few_rows_are_joined(archive: Any, tmp_path: Path):
    batches = [archive.batch([archive.row(offset=at, value=b"%d" % at)]) for at in range(600)]
    path = tmp_path / "a.parquet"
    writer = ParquetFormat().start(SpoolFile.create(path), layout_of(archive))
    most = 0
    for batch in batches:
        writer.write(batch)
        most = max(most, len(writer._gathered))  # type: ignore[attr-defined]
    writer.close(origin=ORIGIN, path="s3://lake/a")
    assert most <= 16
    assert pq.read_table(path).to_pylist() == pa.Table.from_batches(batches).to_pylist()
