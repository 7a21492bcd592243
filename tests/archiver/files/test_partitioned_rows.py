"""Ranges in several files, by tasks."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import StorageDenied, StorageError
from archiver.files import partitioned_rows
from archiver.ingest.kafka_log.grouping import Grouper
from archiver.ingest.task.values import TaskResult, TranslateTask
from archiver.ingest.task.work import translate_range
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.spool_file import SpoolFile
from catalog.partitioning import PartitionColumn, Partitioning
from tests.support.kafka.logs import DAY, Bench, LogInMemory, batch, rows_of
from tests.support.kafka.record_batches import Record, marker
from tests.support.kafka.record_digest import SeenRecord, digest

BY_KEY = Partitioning((PartitionColumn("ingest_day", "day", 13), PartitionColumn("key_raw", "identity", 100)))
BY_BUCKET = Partitioning((PartitionColumn("key_raw_bucket", "bucket[7]", 100),))


def task_of(folder: Path, log: Sequence[bytes], end: int, by: Partitioning = BY_KEY, **changes: Any) -> TranslateTask:
    task = Bench(folder=folder, source=LogInMemory(log=log), **changes).task(0, end)
    target = replace(task.target, partitioning=by, pending_bytes=changes.get("pending_bytes", 128 << 20))
    return replace(task, target=target)


def records(count: int, keys: int, *, size: int = 1) -> list[bytes]:
    return [
        batch(
            base,
            *(Record(timestamp=DAY, key=b"k%d" % (n % keys), value=b"%d" % n * size) for n in range(base, base + 10)),
        )
        for base in range(0, count, 10)
    ]


def seen(result: TaskResult) -> list[list[tuple[bytes | None, list[int]]]]:
    outcome = []
    for item in result.ranges:
        files = []
        for file in item.files:
            assert file.partition.values is not None
            files.append((file.partition.values[-1], [row["offset"] for row in rows_of(file)]))
        outcome.append(files)
    return outcome


def test_range_has_one_file_per_partition_and_all_records(tmp_path: Path) -> None:
    task = task_of(tmp_path, records(60, 4), 60)
    result = translate_range(task)
    assert result.error is None
    ((files),) = seen(result)
    assert [key for key, _ in files] == [b"k0", b"k1", b"k2", b"k3"]
    assert sorted(offset for _, offsets in files for offset in offsets) == list(range(60))
    for key, offsets in files:
        assert offsets == [n for n in range(60) if b"k%d" % (n % 4) == key]
    (range_,) = result.ranges
    assert (range_.start_offset, range_.end_offset, range_.rows) == (0, 60, 60)
    for file in range_.files:
        with ParquetFormat().open(ObjectStore.of({}, attempts=1), file.path) as reader:
            about = reader.metadata
        assert about.origin is not None
        assert (about.origin.files, about.origin.range_id) == (4, range_.id)
        assert about.place == file.partition
        assert file.path.rpartition("/")[0].endswith("/data/ingest_day=1970-01-02")
    expected = [
        SeenRecord(
            partition=4, offset=n, timestamp_type=0, timestamp=DAY, key=b"k%d" % (n % 4), value=b"%d" % n, headers=()
        )
        for n in range(60)
    ]
    assert range_.digest == digest(expected)
    assert pickle.loads(pickle.dumps(result)) == result


@given(
    keys=st.lists(st.none() | st.binary(max_size=1), min_size=1, max_size=60),
    pending=st.sampled_from([1, 2_000, 1 << 20]),
    cuts=st.lists(st.integers(1, 12), max_size=4),
)
def test_spilled_or_not_the_files_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, keys: list[bytes | None], pending: int, cuts: list[int]
) -> None:
    log = [batch(n, Record(timestamp=DAY, key=key, value=b"v%d" % n)) for n, key in enumerate(keys)]
    folder = tmp_path_factory.mktemp("spilled")
    task = task_of(folder, log, len(keys), BY_BUCKET)
    task = replace(task, target=replace(task.target, pending_bytes=pending, source=LogInMemory(log=log, cuts=cuts)))
    with pytest.MonkeyPatch.context() as small:
        small.setitem(Grouper.__init__.__kwdefaults__, "group_rows", 5)
        result = translate_range(task)
    assert result.error is None
    places = {}
    for item in result.ranges:
        for file in item.files:
            assert file.partition is not None
            offsets = [row["offset"] for row in rows_of(file)]
            assert offsets == sorted(offsets)
            places |= dict.fromkeys(offsets, file.partition.values)
            assert file.rows == len(offsets)
    assert sorted(places) == list(range(len(keys)))
    for n, key in enumerate(keys):
        assert places[n] == places[keys.index(key)]
    assert not [element for element in (folder / "spool").rglob("*") if element.is_file()]


def test_memory_is_bounded_with_hundreds_of_partitions(tmp_path: Path) -> None:
    log = records(8_000, 400, size=1_000)
    task = task_of(tmp_path, log, 8_000)
    task = replace(task, target=replace(task.target, pending_bytes=2 << 20))
    most = 0
    original = partitioned_rows.PartitionedRows.add

    def add(self: Any, *given: Any) -> None:
        nonlocal most
        original(self, *given)
        most = max(most, sum(file.rows.nbytes + file.records.nbytes for file in self._waiting))

    with pytest.MonkeyPatch.context() as watched:
        watched.setattr(partitioned_rows.PartitionedRows, "add", add)
        before = pa.total_allocated_bytes()
        result = translate_range(task)
    assert result.error is None
    assert [len(item.files) for item in result.ranges] == [400] * len(result.ranges)
    assert sum(file.rows for file in result.ranges) == 8_000
    assert most < 20 << 20  # one group may be as large as this before it is put aside
    assert pa.total_allocated_bytes() - before < 4 << 20


def test_a_range_ends_with_very_many_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioned_rows, "MOST_FILES", 3)
    result = translate_range(task_of(tmp_path, records(200, 5), 200))
    assert [file.rows for file in result.ranges] == [200]  # a group isn't taken apart
    assert [len(item.files) for item in result.ranges] == [5]


def test_a_range_ends_by_the_largest_file_and_the_next_goes_on(tmp_path: Path) -> None:
    log = [batch(n, Record(timestamp=DAY, key=b"k%d" % (n % 3), value=bytes([n]) * (3 << 20))) for n in range(9)]
    result = translate_range(task_of(tmp_path, log, 9, target_file_size=1 << 20))
    assert result.error is None
    assert len(result.ranges) > 1
    edges = [(item.start_offset, item.end_offset) for item in result.ranges]
    assert edges[0][0] == 0
    assert edges[-1][1] == 9
    assert all(value[1] == after[0] for value, after in pairwise(edges))
    assert sorted(n for files in seen(result) for _, offsets in files for n in offsets) == list(range(9))


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("kind", [StorageError, StorageDenied])
def test_a_range_with_a_file_that_failed_is_none(tmp_path: Path, number: int, kind: type[StorageError]) -> None:
    log = [
        *(batch(n, Record(timestamp=DAY, key=b"k%d" % (n % 3))) for n in range(120)),
        *(batch(n, Record(timestamp=9 * DAY, key=b"k%d" % (n % 3))) for n in range(120, 240)),
        marker(base_offset=240, producer_id=1, commit=True),
    ]
    task = task_of(tmp_path, log, 241)
    uploads = []

    class Store:
        seconds_left = None

        def upload(self, source: SpoolFile, path: str, *, expected: int) -> int:
            uploads.append(path)
            if len(uploads) == number + 1:
                raise kind("refused", file=path)
            return expected

    result = translate_range(replace(task, target=replace(task.target, objects=Store())))
    assert isinstance(result.error, kind)
    assert len(result.ranges) == (1 if number >= 3 else 0)
    assert all(len(item.files) == 3 for item in result.ranges)
    left = [item for item in (tmp_path / "spool").rglob("*") if item.is_file()]
    assert len(left) == (kind is StorageDenied)


def test_without_a_time_among_the_partitions_time_ends_no_range(tmp_path: Path) -> None:
    log = [batch(n, Record(timestamp=(1 + n // 100) * DAY, key=b"k%d" % (n % 3))) for n in range(400)]
    result = translate_range(task_of(tmp_path, log, 400, BY_BUCKET))
    (range_,) = result.ranges
    assert range_.rows == 400
    assert all(file.path.rpartition("/")[0].endswith("/data") for file in range_.files)
