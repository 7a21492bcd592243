"""Files move to the current partition spec."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.upkeep.compact.choice import CompactLimits, FileGroup, Reason, choose
from archiver.upkeep.compact.task import GroupResult
from catalog.digests import add_digests
from catalog.partitioning import PartitionTuple
from tests.support.archive.compacted import CompactedTable
from tests.support.archive.lake import TOPIC
from tests.support.archive.partitioned import check_files
from tests.support.kafka.record_digest import SeenRecord, digest

SPECS = (
    ("hour",),
    ("month", "bucket(3, key.__raw__)"),
    ("bucket(4, kafka.offset)", "day"),
    ("truncate(2, key.__raw__)",),
    ("day(kafka.event_timestamp)", "bucket(2, kafka.partition)", "truncate(9, kafka.offset)"),
)


@pytest.fixture
def table(tmp_path: Path, archive: Any) -> CompactedTable:
    return CompactedTable(tmp_path, archive)


def groups_of(table: CompactedTable, **limits: Any) -> list[FileGroup]:
    chosen = choose(table.sources(), CompactLimits(target_bytes=1 << 20, min_files=2, spec_id=table.spec_id, **limits))
    return [group for group in chosen if group.is_moved]


def move(table: CompactedTable, **more: Any) -> list[GroupResult]:
    done = [table.merged(group, **more) for group in groups_of(table)]
    table.put(*done)
    return done


def specs_in(table: CompactedTable) -> set[int]:
    return {*check_files(table.lake.load(TOPIC.topic))}


def test_a_file_becomes_one_for_each_partition_of_its_rows(table: CompactedTable) -> None:
    for start in (0, 10, 20):
        table.add(start, start + 10)
    before = table.records()
    table.repartition("day", "bucket(3, kafka.offset)")
    (done,) = move(table)
    assert [(span.start_offset, span.end_offset) for new in done.rewritten.files for span in new.spans] == [(0, 30)] * 3
    assert sum(new.file.rows for new in done.rewritten.files) == done.rows == 30
    assert specs_in(table) == {table.spec_id}
    assert table.records() == before
    assert groups_of(table) == [], "nothing is left to move"
    (range_,) = table.ranges
    assert (range_.offsets, len(range_.files), range_.expected) == ((0, 30), 3, 30)


def test_footers_name_the_range_and_its_files(table: CompactedTable) -> None:
    """A registry that is rebuilt without a journal has nothing else."""
    table.add(0, 30)
    table.repartition("bucket(3, kafka.offset)")
    (done,) = move(table)
    origins = [about.origin for about in footers(done)]
    assert {(origin.start_offset, origin.end_offset, origin.files) for origin in origins if origin} == {(0, 30, 3)}
    assert len({origin.range_id for origin in origins if origin}) == 1
    assert {about.place for about in footers(done)} == {new.file.partition for new in done.rewritten.files}


def test_a_table_by_time_alone_names_no_values_of_columns(table: CompactedTable) -> None:
    table.add(0, 20)
    before = table.records()
    table.repartition("bucket(3, kafka.offset)")
    move(table)
    table.repartition("month")
    (done,) = move(table)
    (new,) = done.rewritten.files
    assert new.file.partition == PartitionTuple.of_time(646, "month(13)")
    assert {about.place for about in footers(done)} == {None}
    assert "/ingest_month=2023-11/" in new.file.path
    assert specs_in(table) == {table.spec_id}
    assert table.records() == before


def test_a_range_that_lay_in_several_files_keeps_its_borders(table: CompactedTable) -> None:
    for start in (0, 10):
        table.add(start, start + 10)
    table.repartition("bucket(3, kafka.offset)")
    for partition_start in (20, 30):
        table.add(partition_start, partition_start + 10)
    move(table)
    assert [range_.offsets for range_ in table.ranges] == [(0, 40)]
    table.repartition("truncate(2, key.__raw__)")
    before = table.records()
    move(table)
    assert [range_.offsets for range_ in table.ranges] == [(0, 40)]
    assert table.records() == before
    assert specs_in(table) == {table.spec_id}


def test_deleted_rows_count_once_whatever_the_number_of_files(table: CompactedTable) -> None:
    paths = [table.add(start, start + 10) for start in (0, 10, 20)]
    table.lake.delete_positions({paths[1]: [2, 3], paths[2]: range(10)})
    before = table.records()
    table.repartition("bucket(3, kafka.offset)")
    (group,) = groups_of(table)
    assert group.reasons == {Reason.SPEC, Reason.DELETES}
    (done,) = move(table)
    spans = [span for new in done.rewritten.files for span in new.spans]
    assert (done.removed, sum(span.removed for span in spans)) == (12, 12)
    gone = [(span.rows, span.removed) for span in spans if span.start_offset == 20]
    assert gone == [(0, 10)], "the range without a row is in one file"
    assert table.records() == before
    assert [(range_.offsets, range_.expected) for range_ in table.ranges] == [
        ((0, 10), 10),
        ((10, 20), 10),
        ((20, 30), 10),
    ]


def test_files_without_a_row_left_become_no_file(table: CompactedTable) -> None:
    path = table.add(0, 10)
    table.lake.delete_positions({path: range(10)})
    table.repartition("bucket(3, kafka.offset)")
    (done,) = move(table)
    assert done.rewritten.files == ()
    assert [(range_.start_offset, range_.removed) for range_ in done.rewritten.emptied] == [(0, 10)]


@pytest.mark.parametrize("bound", [{"target_bytes": 1}, {"room": 1}])
def test_files_end_together_where_ranges_may_end(table: CompactedTable, bound: dict[str, int]) -> None:
    table.add(0, 10)
    table.add(10, 20, expected=3)
    table.add(20, 30)
    before = table.records()
    table.repartition("bucket(2, kafka.offset)")
    (done,) = move(table, **bound)
    places = [{(span.start_offset, span.end_offset) for span in new.spans} for new in done.rewritten.files]
    assert places == [{(0, 10)}, {(0, 10)}, {(10, 20)}, {(10, 20)}, {(20, 30)}, {(20, 30)}]
    assert table.records() == before


def test_one_file_at_a_time_is_in_the_spool_and_nothing_stays(
    table: CompactedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.add(0, 300)
    table.repartition("truncate(1, kafka.offset)")
    spool = table.lake.folder.parent / "spool"
    seen: list[int] = []
    upload = ObjectStore.upload

    def watched(self: ObjectStore, *given: Any, **more: Any) -> None:
        seen.append(len([*spool.rglob("*.parquet")]))
        upload(self, *given, **more)

    monkeypatch.setattr(ObjectStore, "upload", watched)
    (done,) = move(table, pending_bytes=1)
    assert (done.files, seen) == (300, [1] * 300)
    assert not [path for path in spool.rglob("*") if path.is_file()]


def test_foreign_rows_without_a_time_are_refused_by_name(table: CompactedTable) -> None:
    table.add(0, 10)
    table.lake.rewrite(without_time)
    table.repartition("month")
    with pytest.raises(Exception, match="no ingest timestamp"):
        move(table)


def without_time(rows: pa.Table) -> pa.Table:
    kafka = rows["kafka"].combine_chunks()
    kind = kafka.type
    index = kind.get_field_index("ingest_timestamp")
    columns = kafka.flatten()
    columns[index] = pa.nulls(len(kafka), kind.field(index).type)
    changed = pa.StructArray.from_arrays(columns, fields=[field.with_nullable(nullable=True) for field in kind])
    at = rows.schema.get_field_index("kafka")
    return rows.set_column(at, rows.schema.field(at).with_type(changed.type), changed)


def footers(done: GroupResult) -> Iterator[Any]:
    for new in done.rewritten.files:
        with FORMATS.of_path(new.file.path).open(ObjectStore(), new.file.path) as reader:
            yield reader.metadata


@st.composite
def changes(draw: st.DrawFn) -> dict[str, Any]:
    lengths = st.lists(st.integers(1, 25), min_size=1, max_size=4)
    return {
        "lengths": {partition: draw(lengths) for partition in range(draw(st.integers(1, 2)))},
        "specs": draw(st.lists(st.sampled_from(SPECS), min_size=1, max_size=3)),
        "missing": draw(st.sampled_from([0, 0, 2])),
        "deleted": draw(st.sampled_from([0.0, 0.3])),
        "mixed": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**16)),
        "target": draw(st.sampled_from([1, 20_000, 1 << 20])),
        "pending": draw(st.sampled_from([1, 1 << 20])),
    }


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(case=changes())
def test_any_mix_of_specs_gives_the_same_records_and_digests(archive: Any, case: dict[str, Any]) -> None:
    noise = random.Random(case["seed"])
    with tempfile.TemporaryDirectory() as folder:
        table = CompactedTable(Path(folder), archive)
        ends = dict.fromkeys(case["lengths"], 0)
        for terms in case["specs"]:
            for partition, lengths in case["lengths"].items():
                for length in lengths:
                    at = ends[partition]
                    missing = case["missing"] if noise.random() < 0.3 else 0
                    table.add(at, at + length, partition=partition, expected=missing)
                    ends[partition] = at + length + noise.choice([0, 0, 5])
            if table.spec_id == 0:
                spoil(table, case, noise)
            table.repartition(*terms)
            for group in groups_of(table):  # some files stay as they are, in a spec of before
                if noise.random() < 0.6:
                    table.put(table.merged(group, pending_bytes=case["pending"]))
        before = {partition: table.records(partition) for partition in case["lengths"]}
        limits = CompactLimits(target_bytes=case["target"], min_files=2, spec_id=table.spec_id)
        for _ in range(3):
            groups = choose(table.sources(), limits)
            done = [table.merged(group, target_bytes=case["target"], pending_bytes=case["pending"]) for group in groups]
            table.put(*done)
            assert {item: table.records(item) for item in before} == before
        assert specs_in(table) <= {table.spec_id}
        written = [digest_in(file.file_path) for file in table.lake.files()]
        seen = (SeenRecord(**_plain(record)) for records in before.values() for record in records)
        assert not written or add_digests(written) == digest(seen)


def spoil(table: CompactedTable, case: dict[str, Any], noise: random.Random) -> None:
    if case["mixed"]:
        table.lake.rewrite()
    positions = {
        source.file.path: [position for position in range(source.file.rows) if noise.random() < case["deleted"]]
        for source in table.sources()
    }
    if any(positions.values()):
        table.lake.delete_positions(positions)


def digest_in(path: str) -> str | None:
    return (pq.read_schema(path.removeprefix("file://")).metadata or {}).get(b"archiver.digest", b"").decode() or None


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    headers = tuple((header["key"], header["value"]) for header in record["headers"])
    return {**record, "headers": headers}
