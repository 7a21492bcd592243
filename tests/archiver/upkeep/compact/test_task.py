"""Compacted files have the same records."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.errors import BadSegment, UpkeepError
from archiver.storage.footer import DIGEST_ALGORITHM_KEY, DIGEST_KEY
from archiver.upkeep.compact.choice import CompactLimits, FileGroup, choose
from catalog.digests import DIGEST_ALGORITHM
from tests.support.archive.compacted import CompactedTable
from tests.support.archive.lake import claim_order
from tests.support.storage.parquet_pages import page_headers, without_page


@pytest.fixture
def table(tmp_path: Path, archive: Any) -> CompactedTable:
    return CompactedTable(tmp_path, archive)


def group_of(table: CompactedTable, *, is_cut: bool = False) -> FileGroup:
    return FileGroup(files=tuple(table.sources()), reasons=frozenset(), is_cut=is_cut)


def test_neighbours_become_one_range(table: CompactedTable) -> None:
    for start in (0, 10, 20):
        table.add(start, start + 10)
    before = table.records()
    done = table.merged(group_of(table))
    (new,) = done.rewritten.files
    assert [(span.start_offset, span.end_offset, span.rows) for span in new.spans] == [(0, 30, 30)]
    table.put(done)
    assert table.records() == before


def test_deleted_rows_keep_the_borders_of_their_range(table: CompactedTable) -> None:
    """A refill finds them by these borders, in the file that was replaced."""
    paths = [table.add(start, start + 10) for start in (0, 10, 20, 30)]
    table.lake.delete_positions({paths[1]: [2, 3]})
    before = table.records()
    done = table.merged(group_of(table))
    (new,) = done.rewritten.files
    assert [(span.start_offset, span.end_offset, span.rows, span.removed) for span in new.spans] == [
        (0, 10, 10, 0), (10, 20, 8, 2), (20, 40, 20, 0),
    ]  # fmt: skip
    table.put(done)
    assert table.records() == before


def test_files_without_a_row_left_become_no_file(table: CompactedTable) -> None:
    path = table.add(0, 10)
    table.lake.delete_positions({path: range(10)})
    done = table.merged(group_of(table))
    assert done.rewritten.files == ()
    assert [(range_.start_offset, range_.removed) for range_ in done.rewritten.emptied] == [(0, 10)]
    table.put(done)
    assert table.records() == []


def test_a_file_ends_at_the_target_size(table: CompactedTable) -> None:
    for start in (0, 100, 200):
        table.add(start, start + 100)
    before = table.records()
    done = table.merged(group_of(table, is_cut=True), target_bytes=1)
    assert [file.spans[0].start_offset for file in done.rewritten.files] == [0, 100, 200]
    table.put(done)
    assert table.records() == before


def test_a_range_with_missing_rows_is_never_cut(table: CompactedTable) -> None:
    table.add(0, 100)
    table.add(100, 200, expected=3)
    done = table.merged(group_of(table, is_cut=True), target_bytes=1)
    spans = [(span.start_offset, span.end_offset) for file in done.rewritten.files for span in file.spans]
    assert spans == [(0, 100), (100, 200)]
    table.put(done)


def test_two_rows_of_one_offset_are_refused_by_name(table: CompactedTable) -> None:
    table.add(0, 10)
    table.lake.insert(pq.read_table(table.lake.files()[0].file_path.removeprefix("file://")).slice(4, 1))
    everything = tuple(replace(source, ranges=()) for source in table.sources())
    with pytest.raises(Exception, match="have the same offset") as caught:
        table.merged(FileGroup(files=everything, reasons=frozenset()))
    assert caught.value.context["offset"] == 4  # type: ignore[attr-defined]


def test_file_with_other_row_count_than_manifest_is_refused(table: CompactedTable) -> None:
    path = Path(table.add(0, 10).removeprefix("file://"))
    short = pq.read_table(path).slice(0, 9)
    with pq.ParquetWriter(path, short.schema) as writer:
        writer.write_table(short)
    with pytest.raises(UpkeepError, match="doesn't have the rows"):
        table.merged(group_of(table))


def test_a_file_with_a_page_that_readers_leave_out_is_refused(table: CompactedTable) -> None:
    """For any column: unread rows would be missing in the new file."""
    table.add(0, 10)
    path = Path(table.add(10, 20).removeprefix("file://"))
    group, whole, before = group_of(table), path.read_bytes(), sorted(path.parent.iterdir())
    pages = [header for header in page_headers(whole) if header.is_data]
    for page in pages:
        path.write_bytes(without_page(whole, page))
        with pytest.raises(BadSegment):
            table.merged(group)
    assert sorted(path.parent.iterdir()) == before
    path.write_bytes(whole)
    assert len(table.merged(group).rewritten.files) == 1


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_file_whose_records_do_not_have_its_digest_is_named(table: CompactedTable, *, is_cut: bool) -> None:
    paths = [table.add(start, start + 10) for start in (0, 10, 20)]
    path = Path(paths[1].removeprefix("file://"))
    rows, about = pq.read_table(path), pq.read_metadata(path).metadata
    ours = {key: value for key, value in about.items() if key.startswith(b"archiver.")}
    pq.write_table(
        rows.replace_schema_metadata({**ours, DIGEST_KEY: "1", DIGEST_ALGORITHM_KEY: DIGEST_ALGORITHM}), path
    )
    with pytest.raises(UpkeepError, match="don't have the digest in its footer") as caught:
        table.merged(group_of(table, is_cut=is_cut))
    assert caught.value.context["file"] == paths[1]


@st.composite
def changes(draw: st.DrawFn) -> dict[str, Any]:
    lengths = st.lists(st.integers(1, 30), min_size=1, max_size=5)
    return {
        "lengths": {partition: draw(lengths) for partition in range(draw(st.integers(1, 3)))},
        "steps": draw(st.integers(1, 3)),
        "missing": draw(st.sampled_from([0, 0, 2])),
        "deleted": draw(st.floats(0, 0.5)),
        "shuffled": draw(st.sampled_from([None, 1, 2, 3])),
        "seed": draw(st.integers(0, 2**16)),
        "target": draw(st.sampled_from([1, 20_000, 1 << 20])),
        "held": draw(st.sampled_from([0, 1 << 20])),
        "min_files": draw(st.integers(2, 4)),
    }


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(case=changes())
def test_any_files_give_the_same_records(archive: Any, case: dict[str, Any]) -> None:
    import random

    noise = random.Random(case["seed"])
    with tempfile.TemporaryDirectory() as folder:
        table = CompactedTable(Path(folder), archive)
        for partition, lengths in case["lengths"].items():
            at = 0
            for length in lengths:
                missing = case["missing"] if noise.random() < 0.3 else 0
                table.add(at, at + length, partition=partition, step=case["steps"], expected=missing)
                at += length + noise.choice([0, 0, 5])
        if case["shuffled"] is not None:
            table.lake.rewrite(lambda rows: dealt(rows, case["shuffled"], noise))
        files = table.sources()
        positions = {
            item.file.path: [position for position in range(item.file.rows) if noise.random() < case["deleted"]]
            for item in noise.sample(files, len(files) // 2)
        }
        if any(positions.values()):
            table.lake.delete_positions(positions)
        before = {partition: table.records(partition) for partition in case["lengths"]}
        limits = CompactLimits(target_bytes=case["target"], min_files=case["min_files"])
        for _ in range(2):
            groups = choose(table.sources(), limits)
            table.put(*(table.merged(group, target_bytes=case["target"], held_bytes=case["held"]) for group in groups))
            assert {item: table.records(item) for item in before} == before
        for source in table.sources():
            assert source.partition is not None, "each file has rows of one Kafka partition"
            assert not source.has_deletes
            if source.file.path.rpartition("/")[2].startswith("orders-"):
                rows = pq.read_table(source.file.path.removeprefix("file://"))
                offsets = rows["kafka"].combine_chunks().field("offset").to_pylist()
                assert offsets == sorted(offsets), "a new file is in order"


def dealt(rows: pa.Table, files: int, noise: Any) -> list[pa.Table]:
    owners = [noise.randrange(files) for _ in range(rows.num_rows)]
    order = noise.sample(range(rows.num_rows), rows.num_rows)
    batches = [rows.take(pa.array([n for n in order if owners[n] == number], pa.int64())) for number in range(files)]
    return [batch for batch in batches if batch.num_rows]


def test_a_file_that_claims_an_order_it_does_not_have_is_sorted(table: CompactedTable) -> None:
    table.add(0, 20_000)
    before = table.records()
    claim_order(table.lake)
    files = tuple(replace(source, ranges=()) for source in table.sources())
    done = table.merged(FileGroup(files=files, reasons=frozenset()))
    table.put(done)
    assert table.records() == before
    (new,) = done.rewritten.files
    assert new.is_sorted
