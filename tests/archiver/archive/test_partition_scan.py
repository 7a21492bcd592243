"""Records come in order of offset."""

from __future__ import annotations

import random
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from archiver.archive.block_order import is_in_order
from archiver.archive.open_file import OpenFile
from archiver.archive.partition_scan import PartitionScan
from archiver.archive.plan import select_files
from archiver.archive.topic_archive import TopicArchive
from archiver.errors import BadSegment, ObjectMissing, ReplayError, StorageError
from archiver.storage.row_order import RowOrder
from archiver.storage.segment import RowRange
from tests.support.archive.archived_rows import KnownMapping, expected, records_of, replayed, rows_of
from tests.support.archive.lake import Lake, claim_order


@pytest.mark.parametrize(
    ("start", "end"), [(0, None), (50, 250), (99, 101), (205, 206), (13, 14), (299, 1000), (500, 600)]
)
@pytest.mark.parametrize("partition", [0, 1, 2])
def test_ranges_of_our_own_files(lake: Lake, filled: list[Any], partition: int, start: int, end: int | None):
    assert replayed(lake.archive(), partition, start, end) == records_of(filled, partition, start, end or 10**9)


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
    result = replayed(lake.archive())
    assert [(value["timestamp_type"], value["timestamp"]) for value in result] == [
        (0, rows[0].timestamp),
        (-1, -1),
        (0, -5),
        (1, 9_999),
        (0, 2**62),
        (0, -(2**63)),
    ]
    assert [value["headers"] for value in result] == [value["headers"] for value in expected(rows)]
    assert [(value["key"], value["value"]) for value in result] == [(row.key, row.value) for row in rows]


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
    rewritten = lake.archive(registry=lambda *_: KnownMapping(archive.rows))
    assert replayed(rewritten) == records_of(filled, 0)
    assert replayed(rewritten, 1) == records_of(filled, 1)
    assert replayed(rewritten, 0, 33, 222) == records_of(filled, 0, 33, 222)


HELD = 1 << 20


def scanned(archive: TopicArchive) -> PartitionScan:
    snapshot, expected = archive.snapshot, RowRange(partition=0)
    return PartitionScan(snapshot.storage, select_files(snapshot.files, expected), expected, held_bytes=HELD)


DEALT = {
    "shuffled": REWRITES["shuffled"],
    "in twenty files": lambda table: [table.take(pa.array(range(value, table.num_rows, 20))) for value in range(20)],
}


@pytest.fixture
def scattered(lake: Lake, archive: Any, tmp_path: Path, request: pytest.FixtureRequest) -> TopicArchive:
    noise = random.Random(1)
    rows = [archive.row(offset=offset, value=noise.randbytes(16_384)) for offset in range(2_500)]
    lake.add(archive.rows, archive.batch(rows), 0, 2_500)
    lake.rewrite(DEALT[request.param], row_group_size=125)
    (tmp_path / "spill").mkdir()
    return lake.archive(registry=lambda *_: KnownMapping(archive.rows), spill=tmp_path / "spill")


@pytest.mark.parametrize("scattered", DEALT, indirect=True)
def test_records_that_have_to_wait_are_put_aside(scattered: TopicArchive, tmp_path: Path):
    before = pa.total_allocated_bytes()
    most, offsets = 0, []
    for batch in scanned(scattered):
        assert offsets or any("spill" in str(file) for file in open_files())
        most = max(most, pa.total_allocated_bytes() - before)
        offsets += batch["offset"].to_pylist()
        files = [path for path in (tmp_path / "spill").rglob("*") if path.is_file()]
        assert files == [], "no other process can open the spilled rows, and a kill leaves nothing"
    assert offsets == list(range(2_500))
    assert most < 16 << 20
    assert not any("spill" in str(file) for file in open_files())


def open_files() -> Iterator[Path]:
    for item in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            yield item.readlink()


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
    assert replayed(reopened) == records_of(filled + fresh, 0)


def test_a_false_claim_of_order_is_noticed(lake: Lake, archive: Any):
    rows = rows_of(archive, range(20_000))
    lake.add(archive.rows, archive.batch(rows), 0, 20_000)
    claim_order(lake)
    opened = lake.archive(registry=lambda *_: KnownMapping(archive.rows))
    (file,) = opened.snapshot.files
    with OpenFile.open(opened.snapshot.storage, file).reader as reader:
        (block,) = reader.blocks()
        assert block.is_sorted
        assert not is_in_order(reader, block)
    assert replayed(opened) == expected(rows)
    assert replayed(opened, 0, 9_000, 11_000) == expected(rows[9_000:11_000])


def test_rows_of_a_range_in_a_wrong_order_are_not_called_double(
    lake: Lake, archive: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(RowOrder, "add", lambda *_: True)
    rows = rows_of(archive, [*range(20_000, 40_000), *range(20_000)])
    lake.add(archive.rows, archive.batch(rows), 0, 40_000)
    with pytest.raises(ReplayError, match=r"out of order.*No record is lost.*archiver verify") as caught:
        replayed(lake.archive())
    assert "remove" not in caught.value.message


def test_rows_added_by_others_are_an_error(lake: Lake, filled: list[Any], archive: Any):
    lake.insert(pa.Table.from_batches([archive.batch(rows_of(archive, [40]))]))
    with pytest.raises(ReplayError, match=r"same offset.*offset=40") as caught:
        replayed(lake.archive())
    assert "remove" not in caught.value.message


def test_columns_dropped_from_the_file_are_an_error(lake: Lake, filled: list[Any], archive: Any):
    lake.rewrite(lambda table: table.drop_columns(["headers"]))
    with pytest.raises(ReplayError, match="headers"):
        replayed(lake.archive(registry=lambda *_: KnownMapping(archive.rows)))


def test_a_rewrite_while_reading_is_followed(lake: Lake, filled: list[Any], archive: Any):
    opened = lake.archive(registry=lambda *_: KnownMapping(archive.rows))
    stream = opened.records(0)
    pylist = next(stream).to_pylist()
    lake.rewrite(drop=True)
    for batch in stream:
        pylist += batch.to_pylist()
    assert [value["offset"] for value in pylist] == [record["offset"] for record in records_of(filled, 0)]


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


def test_an_empty_table(lake: Lake):
    opened = lake.archive()
    assert opened.partitions == ()
    assert replayed(opened) == []
    assert opened.watermarks(0) == (0, 0)
