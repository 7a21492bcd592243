"""Archived rows that were changed or duplicated."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import RemoveSnapshotsUpdate, update_table_metadata

from archiver.archive.records import KAFKA_IDS
from archiver.commit.check_rows import check_rows, renew_check
from archiver.commit.compare_rows import Allowance, compare_rows
from archiver.commit.overlaps import RowBounds, overlapping
from archiver.commit.table_rows import TableRows
from archiver.storage.formats import FORMATS, SegmentFormats
from catalog.iceberg.archive_table import ArchiveTable
from catalog.offset_range import OffsetRange
from catalog.ranges.holes import Checked, ExpectedFile, ExpectedRange
from tests.support.archive.lake import TOPIC, Lake
from tests.support.archive.noted import Noted
from tests.support.catalog.manifest_lists import ManifestLists
from tests.support.storage.parquet_pages import page_headers, without_page
from tests.support.storage.watched_format import watched_formats

RANGES = ((0, 0, 100), (0, 100, 200), (1, 0, 50), (1, 50, 60))


@pytest.fixture
def lake(tmp_path: Path, archive: Any) -> Lake:
    return Lake(tmp_path / "lake", archive.rows)


@pytest.fixture
def expected(lake: Lake, archive: Any) -> list[ExpectedRange]:
    ranges = []
    for partition, start, end in RANGES:
        rows = [archive.row(offset=number, partition=partition, value=b"v%d" % number) for number in range(start, end)]
        path = lake.add(archive.rows, archive.batch(rows), start, end, partition=partition)
        ranges.append(
            ExpectedRange(
                id=f"{partition}-{start}",
                partition=partition,
                start_offset=start,
                end_offset=end,
                files=(ExpectedFile(path=str(path), rows=len(rows)),),
                rows=len(rows),
                file_rows=len(rows),
                digest=None,
            )
        )
    live = TableRows(table_of(lake), FORMATS)
    return [replace(range_, digest=live.digests([range_])[0]) for range_ in ranges]


def table_of(lake: Lake) -> ArchiveTable:
    return ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic))


@pytest.fixture
def registry(expected: list[ExpectedRange], archive: Any) -> Noted:
    return Noted(expected, archive.rows)


def look(lake: Lake, registry: Any, *, is_back: bool = False, formats: SegmentFormats = FORMATS) -> Checked:
    return check_rows(TOPIC, table_of(lake), registry, lambda: table_of(lake), is_back=is_back, formats=formats)


def compare(lake: Lake, registry: Any, formats: SegmentFormats = FORMATS, **allowance: Any) -> Checked | None:
    return compare_rows(TOPIC, registry, lambda: table_of(lake), Allowance(**allowance), formats=formats)


def altered(lake: Lake, registry: Any) -> list[str]:
    look(lake, registry)
    compare(lake, registry)
    return [range_.range_id for range_ in registry.last_checked(TOPIC).altered]


def with_other_values(table: pa.Table, partition: int, offset: int) -> pa.Table:
    rows = table.to_pylist()
    for row in rows:
        if (row["kafka"]["partition"], row["kafka"]["offset"]) == (partition, offset):
            row["val"]["__raw__"] = b"other"
    return pa.Table.from_pylist(rows, table.schema)


def by_offset(table: pa.Table) -> pa.Table:
    return table.take(pc.sort_indices(pc.struct_field(table["kafka"], "offset")))


def refuse(path: str) -> None:
    raise AssertionError(f"data files are read: {path}")


READING_NOTHING = watched_formats(opens=refuse)


def refuse_values(field_ids: frozenset[int] | None) -> None:
    assert field_ids is not None
    assert field_ids <= KAFKA_IDS, "records are read"


READING_OFFSETS = watched_formats(reads=refuse_values)


def test_nothing_is_read_where_only_the_archiver_wrote(lake: Lake, registry: Noted) -> None:
    lake.io = ManifestLists()
    look(lake, registry, formats=READING_NOTHING)
    compare(lake, registry, READING_NOTHING)
    assert registry.last_checked(TOPIC).altered == ()


def test_files_merged_by_others_hold_the_archived_records(lake: Lake, registry: Noted) -> None:
    lake.rewrite(lambda table: table)
    assert altered(lake, registry) == []
    checked = registry.last_checked(TOPIC)
    assert checked is not None
    assert (checked.snapshot_id, checked.uncompared, checked.uncompared_rows) == (
        lake.metadata.current_snapshot_id,
        (),
        0,
    )


def test_a_changed_value_is_told_with_its_range(lake: Lake, registry: Noted) -> None:
    lake.rewrite(lambda table: with_other_values(table, 0, 107))
    assert altered(lake, registry) == ["0-100"]


def test_a_changed_value_is_found_in_a_deletion_that_wrote_files(lake: Lake, registry: Noted) -> None:
    everything = pa.concat_tables(map(rows_of, registry.ranges))
    lake.replace([with_other_values(everything, 0, 107)], operation=Operation.DELETE)
    assert altered(lake, registry) == ["0-100"]


def test_doubled_rows_are_found_in_a_compaction_that_added_rows(lake: Lake, registry: Noted) -> None:
    everything = pa.concat_tables(map(rows_of, registry.ranges))
    lake.replace([everything, rows_of(registry.ranges[3]).slice(5, 1)], operation=Operation.REPLACE)
    assert altered(lake, registry) == ["1-50"]


def test_records_in_a_damaged_page_are_told_with_their_ranges(lake: Lake, registry: Noted) -> None:
    """pyarrow skips the page. Unreadable rows count as altered."""
    (path,) = lake.rewrite(by_offset, row_group_size=10)
    local = Path(path.removeprefix("file://"))
    data = local.read_bytes()
    *_, last = (header for header in page_headers(data) if header.is_data and header.column == "val.__raw__")
    local.write_bytes(without_page(data, last))
    assert altered(lake, registry) == ["0-100"]


def test_rows_that_others_add_with_archived_offsets_are_told(lake: Lake, registry: Noted) -> None:
    lake.insert(rows_of(registry.ranges[3]).slice(5, 1))
    assert altered(lake, registry) == ["1-50"]


def rows_of(one: ExpectedRange) -> pa.Table:
    return pq.read_table(one.files[0].path.removeprefix("file://")).replace_schema_metadata(None)


def test_rows_that_cannot_be_read_back_are_told(lake: Lake, registry: Noted) -> None:
    def without_version(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        for row in rows:
            row["kafka"]["schema_version"] = None if row["kafka"]["partition"] else row["kafka"]["schema_version"]
        return pa.Table.from_pylist(rows, table.schema)

    lake.rewrite(without_version)
    assert {"1-0", "1-50"} <= set(altered(lake, registry))


def test_the_first_look_reads_no_records_and_says_how_many_wait(lake: Lake, registry: Noted) -> None:
    look(lake, registry)
    lake.rewrite(lambda table: with_other_values(table, 0, 107))
    checked = look(lake, registry, formats=READING_OFFSETS)
    assert (checked.altered, checked.uncompared_rows) == ((), 260)
    assert checked.uncompared == (OffsetRange(0, 0, 199), OffsetRange(1, 0, 59))
    assert look(lake, registry, formats=READING_OFFSETS) == checked


def test_capped_comparison_continues_in_the_next_run(lake: Lake, registry: Noted) -> None:
    lake.rewrite(lambda table: with_other_values(with_other_values(table, 0, 107), 1, 55))
    look(lake, registry)
    left = []
    for _ in range(3):
        checked = compare(lake, registry, rows=1, window_rows=100)
        assert checked is not None
        left.append((checked.uncompared_rows, [range_.range_id for range_ in checked.altered]))
    assert compare(lake, registry, rows=1, window_rows=100) is None
    assert left == [(160, []), (60, ["0-100"]), (0, ["0-100", "1-50"])]


def test_a_kill_loses_one_window(lake: Lake, registry: Noted) -> None:
    lake.rewrite(lambda table: with_other_values(table, 0, 7))
    look(lake, registry)
    opened: list[str] = []

    def die(path: str) -> None:
        opened.append(path)
        if len(opened) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(lake, registry, watched_formats(opens=die), window_rows=100)
    checked = look(lake, registry)
    assert ([range_.range_id for range_ in checked.altered], checked.uncompared_rows) == (["0-0"], 160)


def test_slow_opening_table_is_compared_anyway(lake: Lake, registry: Noted) -> None:
    """Else its rows would never be compared."""
    lake.rewrite(lambda table: with_other_values(table, 0, 107))
    look(lake, registry)
    allowance = Allowance(seconds=60.0)

    def load() -> ArchiveTable:
        allowance.rows = 0
        return table_of(lake)

    assert compare_rows(TOPIC, registry, load, allowance) is not None
    assert [range_.range_id for range_ in registry.last_checked(TOPIC).altered] == ["0-100"]


def test_nothing_is_compared_once_the_job_is_to_stop(lake: Lake, registry: Noted) -> None:
    lake.rewrite(lambda table: with_other_values(table, 0, 7))
    look(lake, registry)
    stop = threading.Event()
    stop.set()
    assert compare(lake, registry, stop=stop) is None
    assert look(lake, registry).uncompared_rows == 260


def test_a_check_by_somebody_else_is_not_undone(lake: Lake, registry: Noted) -> None:
    lake.rewrite(lambda table: with_other_values(table, 0, 7))
    checked = look(lake, registry)
    registry.is_forgotten = True
    assert not registry.replace_checked(TOPIC, checked, checked)
    assert compare(lake, registry) is None
    assert registry.checked(TOPIC) is None


def test_what_was_told_stays_told_until_it_is_mended(lake: Lake, registry: Noted, archive: Any) -> None:
    lake.rewrite(lambda table: with_other_values(table, 0, 7))
    assert altered(lake, registry) == ["0-0"]
    add(lake, registry, archive, 60, 70)
    assert altered(lake, registry) == ["0-0"]
    expected = registry.ranges
    registry.ranges = [replace(range_, digest=None) for range_ in expected]
    assert altered(lake, registry) == ["0-0"]
    registry.ranges = [replace(range_, id=f"new-{range_.id}") for range_ in expected]
    lake.rewrite(lambda table: table)
    assert altered(lake, registry) == ["new-0-0"]
    lake.rewrite(with_values_back)
    assert altered(lake, registry) == []


def add(lake: Lake, registry: Noted, archive: Any, start: int, end: int) -> None:
    rows = [archive.row(offset=number, partition=1, value=b"v%d" % number) for number in range(start, end)]
    path = lake.add(archive.rows, archive.batch(rows), start, end, partition=1)
    range_ = replace(
        registry.ranges[-1],
        id=f"1-{start}",
        start_offset=start,
        end_offset=end,
        files=(ExpectedFile(path=str(path), rows=len(rows)),),
        rows=len(rows),
        file_rows=len(rows),
    )
    alone = lake_of(lake, archive, rows, start, end)
    registry.ranges.append(replace(range_, digest=TableRows(table_of(alone), FORMATS).digests([range_])[0]))


def lake_of(lake: Lake, archive: Any, rows: list[Any], start: int, end: int) -> Lake:
    alone = Lake(lake.folder.parent / f"alone-{start}", archive.rows)
    alone.add(archive.rows, archive.batch(rows), start, end, partition=1)
    return alone


def with_values_back(table: pa.Table) -> pa.Table:
    rows = table.to_pylist()
    for row in rows:
        row["val"]["__raw__"] = b"v%d" % row["kafka"]["offset"]
    return pa.Table.from_pylist(rows, table.schema)


def expire_all_but_current(lake: Lake) -> None:
    ids = [
        snapshot.snapshot_id
        for snapshot in lake.metadata.snapshots
        if snapshot.snapshot_id != lake.metadata.current_snapshot_id
    ]
    update = RemoveSnapshotsUpdate(snapshot_ids=ids)
    lake.metadata = update_table_metadata(lake.metadata, (update,), enforce_validation=True)


def test_what_was_told_outlives_a_check_that_is_forgotten(lake: Lake, registry: Noted, archive: Any) -> None:
    """The UPDATE's snapshot expired, and a run was killed between commit and confirmation."""
    lake.rewrite(lambda table: with_other_values(table, 0, 7))
    assert altered(lake, registry) == ["0-0"]
    add(lake, registry, archive, 60, 70)
    expire_all_but_current(lake)
    registry.is_forgotten = True
    assert [range_.range_id for range_ in look(lake, registry).altered] == ["0-0"]
    assert altered(lake, registry) == ["0-0"]


def test_uncompared_rows_outlive_a_forgotten_check(lake: Lake, registry: Noted, archive: Any) -> None:
    lake.rewrite(lambda table: with_other_values(table, 0, 7))
    look(lake, registry)
    add(lake, registry, archive, 60, 70)
    expire_all_but_current(lake)
    registry.is_forgotten = True
    assert altered(lake, registry) == ["0-0"]


def test_a_table_set_back_forgets_nothing_that_was_told(lake: Lake, registry: Noted) -> None:
    lake.rewrite(lambda table: with_other_values(table, 0, 7))
    assert altered(lake, registry) == ["0-0"]
    after = lake.metadata.current_snapshot_id
    assert after is not None
    lake.set_main(lake.metadata.snapshots[0].snapshot_id)
    assert [range_.range_id for range_ in look(lake, registry, is_back=True).altered] == ["0-0"]
    lake.set_main(after)
    expire_all_but_current(lake)
    assert altered(lake, registry) == ["0-0"]


def test_a_range_with_a_hole_is_compared_once_that_is_filled(lake: Lake, registry: Noted) -> None:
    removed = []

    def without_one(table: pa.Table) -> pa.Table:
        is_seven = pc.and_(
            pc.equal(pc.struct_field(table["kafka"], "offset"), 7),
            pc.equal(pc.struct_field(table["kafka"], "partition"), 0),
        )
        removed.append(table.filter(is_seven))
        return with_other_values(table.filter(pc.invert(is_seven)), 0, 8)

    lake.rewrite(without_one)
    assert altered(lake, registry) == []
    checked = registry.last_checked(TOPIC)
    assert checked is not None
    assert [hole.range_id for hole in checked.holes] == ["0-0"]
    assert (checked.uncompared, checked.uncompared_rows) == ((OffsetRange(0, 0, 99),), 0)
    lake.insert(removed[0])
    expire_all_but_current(lake)
    registry.is_forgotten = True
    assert altered(lake, registry) == ["0-0"]


def test_rows_past_the_archived_end_are_compared_later(lake: Lake, registry: Noted, archive: Any) -> None:
    ahead = [archive.row(offset=number, partition=1, value=b"v%d" % number) for number in range(65, 67)]
    lake.insert(pa.Table.from_batches([archive.batch(ahead)]).cast(rows_of(registry.ranges[3]).schema))
    assert altered(lake, registry) == []
    checked = registry.last_checked(TOPIC)
    assert checked is not None
    assert (checked.uncompared, checked.uncompared_rows) == ((OffsetRange(1, 65, 66),), 0)
    add(lake, registry, archive, 60, 70)
    assert altered(lake, registry) == ["1-60"]


def test_a_history_that_does_not_reach_the_last_check_is_told(
    lake: Lake, registry: Noted, caplog: pytest.LogCaptureFixture
) -> None:
    assert look(lake, registry).unseen_before is None
    lake.rewrite(lambda table: table)
    expire_all_but_current(lake)
    assert look(lake, registry).unseen_before is None, "nothing between the two has expired"
    lake.rewrite(lambda table: table)
    lake.rewrite(lambda table: table)
    expire_all_but_current(lake)
    for _ in range(2):
        assert look(lake, registry).unseen_before == lake.metadata.current_snapshot_id
    assert caplog.text.count("weren't checked") == 1


def test_a_renewed_check_outlives_the_snapshots_before_it(lake: Lake, registry: Noted) -> None:
    assert look(lake, registry).unseen_before is None
    for _ in range(3):
        lake.rewrite(lambda table: table)
    renew_check(TOPIC, table_of(lake), registry, lambda: table_of(lake))  # type: ignore[arg-type]
    expire_all_but_current(lake)
    assert look(lake, registry).unseen_before is None


def test_a_check_of_before_is_read_as_one_where_nothing_waits() -> None:
    checked = Checked.from_json({"snapshot_id": 7, "holes": []})
    assert (checked.uncompared, checked.uncompared_rows, checked.unseen_before) == ((), 0, None)
    assert checked.to_json() == {"snapshot_id": 7, "holes": []}


def test_a_footer_less_file_needs_the_registrys_mappings(lake: Lake, registry: Noted) -> None:
    lake.rewrite(lambda table: table)
    registry.mapping = None
    assert len(altered(lake, registry)) == len(registry.ranges)


def test_ranges_overlap_files_as_their_bounds_say() -> None:
    ranges = [
        ExpectedRange(
            id=f"{partition}-{start}",
            partition=partition,
            start_offset=start,
            end_offset=start + 10,
            files=(),
            rows=10,
            file_rows=10,
            digest=None,
        )
        for partition in range(3)
        for start in range(0, 100, 10)
    ]

    def found(*places: RowBounds) -> list[str]:
        return [range_.id for range_, hit in zip(ranges, overlapping(ranges, places), strict=True) if hit]

    assert found() == []
    assert found(RowBounds(1, 1, 9, 9)) == ["1-0"]
    assert found(RowBounds(1, 1, 10, 10)) == ["1-10"]
    assert found(RowBounds(1, 2, 95, 200), RowBounds(0, 0, 0, 0)) == ["0-0", "1-90", "2-90"]
    assert found(RowBounds(0, 0, 0, 99), RowBounds(0, 0, 40, 41)) == [f"0-{start}" for start in range(0, 100, 10)]
    assert found(RowBounds(0, 5, 100, 900), RowBounds(3, 5, 0, 900)) == []
