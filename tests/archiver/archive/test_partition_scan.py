"""Records in order, from our own files and from what others made of them; pyiceberg and hand-made rows judge."""

from __future__ import annotations

import random
import resource
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from archiver.archive.partition_scan import PartitionScan
from archiver.archive.plan import select_files
from archiver.archive.topic_archive import TopicArchive
from archiver.errors import BadSegment, ObjectMissing, ReplayError, StorageError
from archiver.storage.formats import SegmentFormats
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import RowRange
from tests.support.archive.lake import Lake


def rows_of(archive: Any, offsets: Iterable[int], *, partition: int = 0) -> list[Any]:
    return [
        archive.row(
            offset=offset,
            partition=partition,
            key=None if offset % 5 == 0 else b"k%d" % offset,
            value=None if offset % 7 == 0 else b"p%d-%d" % (partition, offset) * (offset % 3),
            headers=[(b"n", b"%d" % offset), (b"\xfe", None)][: offset % 3],
            timestamp=None if offset % 11 == 0 else 1_000_000 + offset,
        )
        for offset in offsets
    ]


def expected(rows: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {
            "partition": row.partition,
            "offset": row.offset,
            "timestamp_type": row.timestamp_type,
            "timestamp": -1 if row.timestamp is None else row.timestamp,
            "key": row.key,
            "value": row.value,
            "headers": [{"key": key, "value": value} for key, value in row.headers],
        }
        for row in rows
    ]


def replayed(archive: TopicArchive, partition: int = 0, start: int = 0, end: int | None = None) -> list[dict[str, Any]]:
    found = []
    for batch in archive.records(partition, start, end):
        batch.validate(full=True)
        found += batch.drop_columns(["leader_epoch"]).to_pylist()
    return found


@pytest.fixture
def filled(lake: Lake, archive: Any) -> list[Any]:
    """Three files of partition 0 with gaps in the offsets, two of partition 1."""
    everything = []
    for partition, start, end in ((0, 0, 100), (1, 0, 50), (0, 100, 200), (0, 205, 300), (1, 50, 60)):
        rows = rows_of(archive, (each for each in range(start, end) if each % 13), partition=partition)
        lake.add(archive.rows, archive.batch(rows), min(start, 200), end, partition=partition)
        everything += rows
    return everything


def of(rows: Iterable[Any], partition: int, start: int = 0, end: int = 10**9) -> list[dict[str, Any]]:
    found = [row for row in rows if row.partition == partition and start <= row.offset < end]
    return expected(sorted(found, key=lambda row: row.offset))


@pytest.mark.parametrize(
    ("start", "end"), [(0, None), (50, 250), (99, 101), (205, 206), (13, 14), (299, 1000), (500, 600)]
)
@pytest.mark.parametrize("partition", [0, 1, 2])
def test_ranges_of_our_own_files(lake: Lake, filled: list[Any], partition: int, start: int, end: int | None):
    assert replayed(lake.archive(), partition, start, end) == of(filled, partition, start, end or 10**9)


def test_every_field_of_a_record(lake: Lake, archive: Any):
    rows = [
        archive.row(
            offset=1, key=b"", value=b"", headers=[(b"a", b""), (b"a", None), (b"", b"x"), (b"\xff\x00", b"y")]
        ),
        archive.row(offset=2, key=None, value=None, timestamp=None, timestamp_type=-1),
        archive.row(offset=3, timestamp=-5, timestamp_type=0),
        archive.row(offset=4, timestamp=7, timestamp_type=1, append_timestamp=9_999),
        archive.row(offset=5, timestamp=None, raw_timestamp=2**62),
        archive.row(offset=6, timestamp=None, raw_timestamp=-(2**63)),
    ]
    lake.add(archive.rows, archive.batch(rows), 0, 10)
    found = replayed(lake.archive())
    assert [(one["timestamp_type"], one["timestamp"]) for one in found] == [
        (0, rows[0].timestamp),
        (-1, -1),
        (0, -5),
        (1, 9_999),
        (0, 2**62),
        (0, -(2**63)),
    ]
    assert [one["headers"] for one in found] == [each["headers"] for each in expected(rows)]
    assert [(one["key"], one["value"]) for one in found] == [(row.key, row.value) for row in rows]


REWRITES = {
    "as it was": lambda table: table,
    "backwards": lambda table: table.take(pa.array(range(table.num_rows - 1, -1, -1))),
    "shuffled": lambda table: table.take(pa.array(random.Random(4).sample(range(table.num_rows), table.num_rows))),
    "by time": lambda table: table.take(pc.sort_indices(pc.struct_field(table["kafka"], "event_timestamp"))),
    "interleaved in two files": lambda table: [
        table.take(pa.array(range(start, table.num_rows, 2))) for start in (0, 1)
    ],
    "columns in another order": lambda table: table.select(["headers", "kafka", "val", "key"]),
    "with a column of others": lambda table: table.append_column(
        pa.field("note", pa.string(), metadata={"PARQUET:field_id": "4711"}), pa.array(["x"] * table.num_rows)
    ),
    "without a shred of order, in many files": lambda table: [
        table.take(
            pa.array(random.Random(seed).sample(range(seed, table.num_rows, 5), len(range(seed, table.num_rows, 5))))
        )
        for seed in range(5)
    ],
}


@pytest.mark.parametrize("change", REWRITES.values(), ids=REWRITES.keys())
@pytest.mark.parametrize(
    "options", [{}, {"row_group_size": 37}, {"write_statistics": False, "row_group_size": 50}], ids=str
)
@pytest.mark.parametrize("with_metrics", [True, False], ids=["metrics", "no metrics"])
def test_rewrites_by_others(
    lake: Lake, filled: list[Any], change: Any, *, options: dict[str, Any], with_metrics: bool, archive: Any
):
    lake.rewrite(change, with_metrics=with_metrics, **options)
    rewritten = lake.archive(registry=lambda _: Known(archive.rows))
    assert replayed(rewritten) == of(filled, 0)
    assert replayed(rewritten, 1) == of(filled, 1)
    assert replayed(rewritten, 0, 33, 222) == of(filled, 0, 33, 222)


class Known:
    """A source of mappings that knows one."""

    def __init__(self, *rows: Any) -> None:
        self.rows = {each.schema_version: each for each in rows}

    def row_mapping(self, version: int) -> Any:
        return self.rows.get(version)


HELD = 1 << 20


def scanned(archive: TopicArchive) -> PartitionScan:
    snapshot, wanted = archive.snapshot, RowRange(partition=0)
    return PartitionScan(snapshot.storage, select_files(snapshot.files, wanted), wanted, held_bytes=HELD)


DEALT = {
    "shuffled": REWRITES["shuffled"],
    "in twenty files": lambda table: [table.take(pa.array(range(each, table.num_rows, 20))) for each in range(20)],
}


@pytest.fixture
def scattered(lake: Lake, archive: Any, tmp_path: Path, request: pytest.FixtureRequest) -> TopicArchive:
    """40 MiB of records, of which every row group has offsets from everywhere."""
    noise = random.Random(1)
    rows = [archive.row(offset=offset, value=noise.randbytes(16_384)) for offset in range(2_500)]
    lake.add(archive.rows, archive.batch(rows), 0, 2_500)
    lake.rewrite(DEALT[request.param], row_group_size=125)
    (tmp_path / "spill").mkdir()
    return lake.archive(registry=lambda _: Known(archive.rows), spill=tmp_path / "spill")


@pytest.mark.parametrize("scattered", DEALT, indirect=True)
def test_records_that_have_to_wait_are_put_aside(scattered: TopicArchive, tmp_path: Path):
    before = pa.total_allocated_bytes()
    most, offsets = 0, []
    for batch in scanned(scattered):
        assert offsets or any("spill" in str(each) for each in open_files())
        most = max(most, pa.total_allocated_bytes() - before)
        offsets += batch["offset"].to_pylist()
        assert not list((tmp_path / "spill").iterdir()), "nobody else can open it, and a kill leaves nothing"
    assert offsets == list(range(2_500))
    assert most < 16 << 20
    assert not any("spill" in str(each) for each in open_files())


def open_files() -> Iterator[Path]:
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            yield each.readlink()


@pytest.mark.parametrize("scattered", ["shuffled"], indirect=True)
def test_no_room_to_put_records_aside_is_an_error(scattered: TopicArchive):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 * HELD, hard))
    try:
        with pytest.raises(StorageError, match=r"can't be put aside.*folder=.*spill"):
            list(scanned(scattered))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_mapping_that_nobody_knows_is_an_error(lake: Lake, filled: list[Any]):
    lake.rewrite()
    with pytest.raises(ReplayError, match="nobody knows the mapping"):
        replayed(lake.archive())


def test_one_footer_of_ours_is_enough(lake: Lake, filled: list[Any], archive: Any):
    lake.rewrite()
    fresh = rows_of(archive, range(300, 310))
    lake.add(archive.rows, archive.batch(fresh), 300, 310)
    reopened = lake.archive()
    assert replayed(reopened, 0, 300) == expected(fresh)
    assert replayed(reopened) == of(filled + fresh, 0)


def test_position_deletes_become_gaps(lake: Lake, filled: list[Any]):
    first, *_ = sorted(lake.files(), key=lambda file: file.file_path)
    lake.delete_positions({first.file_path: [0, 2, 91]})
    kept = replayed(lake.archive())
    judged = lake.load("orders").scan().to_arrow()["kafka"]
    offsets = sorted(each["offset"] for each in judged.to_pylist() if each["partition"] == 0)
    assert [one["offset"] for one in kept] == offsets
    assert kept == [one for one in of(filled, 0) if one["offset"] not in (1, 3, 99)]


def test_position_deletes_reach_every_row_group(lake: Lake, filled: list[Any], archive: Any):
    (path,) = lake.rewrite(row_group_size=37)
    positions = [3, 36, 37, 74, 110, 200]
    lake.delete_positions({path: positions, "file:///elsewhere": [1]})
    table = lake.load("orders").scan().to_arrow()
    offsets = sorted(each["offset"] for each in table["kafka"].to_pylist() if each["partition"] == 0)
    found = replayed(lake.archive(registry=lambda _: Known(archive.rows)))
    assert [one["offset"] for one in found] == offsets
    assert len(found) < len(of(filled, 0))


def ids(name: str, field_id: int, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


def test_equality_deletes_by_a_nested_column(lake: Lake, filled: list[Any]):
    kafka = pa.struct([ids("offset", 11, pa.int64())])
    lake.delete_equal(
        pa.table([pa.array([{"offset": 1}, {"offset": 150}], kafka)], pa.schema([ids("kafka", 4, kafka)])), [11]
    )
    assert replayed(lake.archive()) == [one for one in of(filled, 0) if one["offset"] not in (1, 150)]
    assert replayed(lake.archive(), 1) == [one for one in of(filled, 1) if one["offset"] != 1]


def test_equality_deletes_by_several_columns_with_nulls(lake: Lake, filled: list[Any]):
    kafka = pa.struct([ids("partition", 10, pa.int32()), ids("event_timestamp", 12, pa.timestamp("us", "UTC"))])
    rows = [
        {"partition": 1, "event_timestamp": None},
        {"partition": 0, "event_timestamp": 1_000_003_000},
        {"partition": 1, "event_timestamp": 999},
    ]
    lake.delete_equal(pa.table([pa.array(rows, kafka)], pa.schema([ids("kafka", 4, kafka)])), [10, 12])
    assert replayed(lake.archive()) == [one for one in of(filled, 0) if one["timestamp"] != 1_000_003]
    assert replayed(lake.archive(), 1) == [one for one in of(filled, 1) if one["timestamp"] != -1]


def test_equality_deletes_spare_later_files_and_other_days(lake: Lake, filled: list[Any], archive: Any):
    kafka = pa.struct([ids("offset", 11, pa.int64())])
    deletes = pa.table([pa.array([{"offset": 305}, {"offset": 5}], kafka)], pa.schema([ids("kafka", 4, kafka)]))
    lake.delete_equal(deletes, [11])
    lake.delete_equal(deletes, [11], partition=1)
    later = rows_of(archive, range(300, 310))
    lake.add(archive.rows, archive.batch(later), 300, 310)
    assert replayed(lake.archive()) == [one for one in of(filled + later, 0) if one["offset"] != 5]


def test_equality_deletes_of_a_column_the_file_lacks_match_nulls(lake: Lake, filled: list[Any]):
    lake.delete_equal(pa.table([pa.array([None], pa.string())], pa.schema([ids("note", 4711, pa.string())])), [4711])
    assert replayed(lake.archive()) == []


def test_rows_added_by_others_are_an_error(lake: Lake, filled: list[Any], archive: Any):
    lake.insert(pa.Table.from_batches([archive.batch(rows_of(archive, [40]))]))
    with pytest.raises(ReplayError, match=r"same offset.*offset=40"):
        replayed(lake.archive())


def test_columns_dropped_from_the_file_are_an_error(lake: Lake, filled: list[Any], archive: Any):
    lake.rewrite(lambda table: table.drop_columns(["headers"]))
    with pytest.raises(ReplayError, match="headers"):
        replayed(lake.archive(registry=lambda _: Known(archive.rows)))


def test_a_rewrite_while_reading_is_followed(lake: Lake, filled: list[Any], archive: Any):
    opened = lake.archive(registry=lambda _: Known(archive.rows))
    stream = opened.records(0)
    found = next(stream).to_pylist()
    lake.rewrite(drop=True)
    for batch in stream:
        found += batch.to_pylist()
    assert [one["offset"] for one in found] == [one["offset"] for one in of(filled, 0)]


def test_a_lost_file_is_an_error(lake: Lake, filled: list[Any]):
    lost = min(file.file_path for file in lake.files())
    Path(lost.removeprefix("file://")).unlink()
    with pytest.raises(ObjectMissing, match="ours-0"):
        replayed(lake.archive())


def test_a_damaged_file_is_an_error(lake: Lake, filled: list[Any]):
    damaged = Path(min(file.file_path for file in lake.files()).removeprefix("file://"))
    damaged.write_bytes(damaged.read_bytes()[:-8] + b"????PAR1")
    with pytest.raises(BadSegment, match="ours-0"):
        replayed(lake.archive())


def test_watermarks(lake: Lake, archive: Any, filled: list[Any]):
    opened = lake.archive()
    assert opened.partitions == (0, 1)
    assert opened.watermarks(0) == (1, 300)
    assert opened.watermarks(1) == (1, 60)
    assert opened.watermarks(9) == (0, 0)
    lake.add(archive.rows, None, 300, 310)
    assert opened.refresh().next_offsets == {0: 310, 1: 60}
    assert opened.watermarks(0) == (1, 310)
    lake.rewrite(with_metrics=False)
    opened.refresh()
    assert opened.watermarks(0) == (1, 310)
    assert opened.watermarks(1) == (1, 60)


class CountingFormat:
    """Notes the files that are opened."""

    name, extension = "parquet", "parquet"

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, objects: Any, path: str) -> Any:
        self.opened.append(path)
        return ParquetFormat().open(objects, path)


@pytest.mark.parametrize("first", [0, 7])
def test_a_watermark_that_bounds_tell_opens_no_file(lake: Lake, archive: Any, first: int):
    lake.add(archive.rows, archive.batch(rows_of(archive, range(first, first + 9))), first, first + 9)
    counting = CountingFormat()
    assert lake.archive(formats=SegmentFormats(written=counting)).watermarks(0) == (first, first + 9)
    assert counting.opened == []


def test_watermarks_see_deletes(lake: Lake, filled: list[Any]):
    first = min(file.file_path for file in lake.files())
    lake.delete_positions({first: range(50)})
    assert lake.archive().watermarks(0) == (55, 300)


@pytest.mark.parametrize("rewritten", [False, True])
def test_offsets_of_times(lake: Lake, archive: Any, rewritten: bool):
    times = [50, 10, 80, 20, 70, None, 60, 90, 30]
    for start in (0, 3, 6):
        rows = [archive.row(offset=start + i, timestamp=times[start + i]) for i in range(3)]
        lake.add(archive.rows, archive.batch(rows), start, start + 3)
    log_append = archive.row(offset=9, timestamp=5, timestamp_type=1, append_timestamp=100)
    lake.add(archive.rows, archive.batch([log_append]), 9, 10)
    if rewritten:
        lake.rewrite(REWRITES["shuffled"], row_group_size=4, with_metrics=False)
    opened = lake.archive()
    assert [opened.offset_for_time(0, time) for time in (0, 10, 51, 80, 81, 91, 100, 101)] == [
        0,
        0,
        2,
        2,
        7,
        9,
        9,
        None,
    ]
    assert opened.offset_for_time(5, 0) is None


def test_an_empty_table(lake: Lake):
    opened = lake.archive()
    assert opened.partitions == ()
    assert replayed(opened) == []
    assert opened.watermarks(0) == (0, 0)
