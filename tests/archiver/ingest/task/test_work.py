"""A task over a log in memory."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import (
    BrokerUnavailable,
    CredentialsExpired,
    ParseHalted,
    StorageDenied,
    StorageError,
    UnrecognizedHalted,
)
from archiver.ingest.task.values import TaskResult, TranslateTask
from archiver.ingest.task.work import MODULES, translate_range
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import SegmentFormat, SegmentLayout, SegmentReader, SegmentWriter
from archiver.storage.spool_file import SpoolFile
from catalog.model import DataFileInfo
from catalog.partitioning import PartitionTuple
from schema_mapping import LedgerState, RawMapping, RowMapping, assign, compile_mapping
from tests.support.kafka.logs import DAY, Bench, LogInMemory, batch, rows_of
from tests.support.kafka.record_batches import Record, marker, patched, raw_batch
from tests.support.kafka.record_digest import SeenRecord, digest
from tests.support.schemas.proto_text import fields


def days(base: int, *counts: int) -> list[bytes]:
    return [
        batch(base + 2 * number, *[Record(timestamp=day * DAY, value=b"%d" % day)] * 2)
        for number, day in enumerate(day for day, count in enumerate(counts) for _ in range(count))
    ]


def spans(result: TaskResult) -> list[tuple[int, int]]:
    return [(range_.start_offset, range_.end_offset) for range_ in result.ranges]


def bench(tmp_path: Path, log: list[bytes], **changes: object) -> Bench:
    return Bench(folder=tmp_path, source=LogInMemory(log=log), **changes)  # type: ignore[arg-type]


def test_each_day_has_its_file_and_ranges_follow_each_other(tmp_path: Path):
    made = bench(tmp_path, days(10, 100, 150, 120))
    result = translate_range(made.task(10, 750))
    assert result.error is None
    assert spans(result) == [(10, 210), (210, 510), (510, 750)]
    for day, range_ in enumerate(result.ranges):
        assert range_.file is not None
        assert (range_.topic, range_.partition, range_.schema_version, range_.leader_epoch) == ("orders", 4, 3, 5)
        assert range_.file.partition == PartitionTuple.of_time(day, "day(13)")
        rows = rows_of(range_.file)
        assert [row["offset"] for row in rows] == list(range(range_.start_offset, range_.end_offset))
        folder, name = range_.file.path.split("/")[-2:]
        assert folder == f"ingest_day=1970-01-0{day + 1}"
        assert re.fullmatch(rf"orders-4-{range_.start_offset:020d}-[0-9a-z]{{26}}\.parquet", name)
    assert result.metrics.records == 740
    assert result.metrics.batches == 370
    assert result.metrics.files == 3
    assert made.spooled() == []


def test_clocks_gone_wild_make_a_handful_of_files(tmp_path: Path):
    noise = Random(7)
    wild = [batch(number, Record(timestamp=noise.randrange(20_000 * DAY))) for number in range(5_000)]
    result = translate_range(bench(tmp_path, wild).task(0, 5_000))
    assert result.error is None
    assert result.metrics.records == 5_000
    assert len(result.ranges) < 60, "a file for each new maximum, about the logarithm of the batches, and for 17 falls"


def test_each_file_has_the_digest_of_its_records(tmp_path: Path):
    result = translate_range(bench(tmp_path, days(10, 100, 150, 120)).task(10, 750))
    for day, range_ in enumerate(result.ranges):
        assert range_.file is not None
        expected = digest(
            SeenRecord(4, offset, 0, day * DAY, b"key", b"%d" % day, ())
            for offset in range(range_.start_offset, range_.end_offset)
        )
        assert range_.file.digest == expected
        with ParquetFormat().open(ObjectStore.of({}), range_.file.path) as reader:
            assert reader.metadata.digest == expected


def test_task_and_result_travel(tmp_path: Path):
    task = pickle.loads(pickle.dumps(bench(tmp_path, days(0, 1)).task(0, 2)))
    result = pickle.loads(pickle.dumps(translate_range(task)))
    assert spans(result) == [(0, 2)]


def test_gaps_and_markers_are_covered(tmp_path: Path):
    log = [*days(10, 1), marker(base_offset=12, producer_id=1, commit=True), *days(20, 1)]
    result = translate_range(bench(tmp_path, log).task(5, 30))
    assert spans(result) == [(5, 22)]
    assert [row["offset"] for row in rows_of(result.ranges[0].file)] == [10, 11, 20, 21]


def test_a_range_without_records_has_no_file(tmp_path: Path):
    log = [marker(base_offset=12, producer_id=1, commit=True)]
    result = translate_range(bench(tmp_path, log).task(12, 13))
    assert spans(result) == [(12, 13)]
    assert result.ranges[0].file is None
    assert result.ranges[0].leader_epoch == 2


def test_nothing_read_is_no_range(tmp_path: Path):
    assert translate_range(bench(tmp_path, []).task(12, 13)).ranges == ()


def test_markers_behind_a_full_file_are_a_range_of_their_own(tmp_path: Path):
    log = [*days(0, 1), marker(base_offset=2, producer_id=1, commit=True)]
    result = translate_range(bench(tmp_path, log, target_file_size=1).task(0, 3))
    assert spans(result) == [(0, 2), (2, 3)]
    assert [range_.file is None for range_ in result.ranges] == [False, True]


def test_a_head_that_is_not_owned_moves_the_start(tmp_path: Path):
    made = bench(tmp_path, days(0, 3))
    assert spans(translate_range(made.task(1, 6, owns_head=False))) == [(2, 6)]
    assert spans(translate_range(made.task(1, 6, owns_head=True))) == [(1, 6)]


def test_time_that_is_up_ends_the_task_at_a_batch(tmp_path: Path):
    made = replace(bench(tmp_path, []), source=LogInMemory(log=days(0, 5), cuts=[2]), budget_seconds=0.0)
    assert spans(translate_range(made.task(0, 10))) == [(0, 4)]


def test_what_was_read_before_the_brokers_went_away_is_kept(tmp_path: Path):
    made = replace(bench(tmp_path, []), source=LogInMemory(log=days(0, 5), cuts=[3], fails_after=1))
    result = translate_range(made.task(0, 10))
    assert isinstance(result.error, BrokerUnavailable)
    assert spans(result) == [(0, 6)]


def test_halting_keeps_what_precedes_the_batch_of_the_bad_record(tmp_path: Path):
    row = RowMapping(key=RawMapping(raw_id=100), value=compile_mapping(StringValue.DESCRIPTOR), schema_version=3)
    good = StringValue(value="x" * 1_000_000).SerializeToString()
    log = [batch(number, Record(value=good)) for number in range(30)]
    log.append(batch(30, Record(value=b"\xff")))
    made = bench(tmp_path, log, row=row, on_parse_error="halt")
    result = translate_range(made.task(0, 31))
    assert isinstance(result.error, ParseHalted)
    assert result.error.context["offset"] == 30
    assert spans(result) == [(0, 30)]
    assert made.spooled() == []


def test_halting_ends_before_the_earlier_of_key_and_value(tmp_path: Path):
    """Keys are judged before values, parse errors before unknown fields."""
    text = fields("string value = 1;")
    row = replace(assign(LedgerState(), key=text, value=text).row, schema_version=3)
    good, bad, unknown = StringValue(value="x").SerializeToString(), b"\xff", b"\x10\x01"
    log = [
        batch(0, Record(key=good, value=good)),
        batch(1, Record(key=good, value=good), Record(key=good, value=good)),
        batch(3, Record(key=good, value=good), Record(key=good, value=unknown)),
        batch(5, Record(key=good, value=bad)),
        batch(6, Record(key=bad, value=good)),
    ]
    for on_unrecognized, kind, offset, end in [("halt", UnrecognizedHalted, 4, 3), ("warn", ParseHalted, 5, 5)]:
        made = bench(tmp_path / on_unrecognized, log, row=row, on_parse_error="halt")
        task = made.task(0, 7)
        halting = replace(task, target=replace(task.target, on_unrecognized=on_unrecognized))
        result = translate_range(halting)
        assert isinstance(result.error, kind)
        assert result.error.context["offset"] == offset
        assert spans(result) == [(0, end)]
        assert made.spooled() == []


@dataclass(frozen=True)
class FailingFormat:
    step: str
    file: int
    extension: str = "parquet"

    def start(self, spool_file: SpoolFile, layout: SegmentLayout) -> SegmentWriter:
        number = FailingWriter.started
        FailingWriter.started += 1
        return FailingWriter(ParquetFormat().start(spool_file, layout), self.step if number == self.file else "")

    def open(self, objects: ObjectStore, path: str, *, reads_all: bool = False) -> SegmentReader:
        raise AssertionError


class FailingWriter:
    started = 0

    def __init__(self, inner: SegmentWriter, step: str) -> None:
        self._inner = inner
        self._step = step

    @property
    def rows(self) -> int:
        return self._inner.rows

    @property
    def size_bytes(self) -> int:
        return self._inner.size_bytes

    def write(self, rows: pa.RecordBatch) -> None:
        self._inner.write(rows)
        if self._step == "write":
            raise StorageError("the disk is full")

    def close(self, **about: Any) -> DataFileInfo:
        if self._step == "close":
            raise StorageError("the disk is full")
        return self._inner.close(**about)

    def abort(self) -> None:
        self._inner.abort()


@pytest.mark.parametrize("step", ["write", "close"])
@pytest.mark.parametrize(("file", "kept"), [(0, []), (1, [(0, 200)]), (2, [(0, 200), (200, 400)])])
def test_a_file_that_failed_is_in_no_range(tmp_path: Path, step: str, file: int, kept: list[tuple[int, int]]):
    FailingWriter.started = 0
    failing: SegmentFormat = FailingFormat(step, file)
    made = bench(tmp_path, [*days(0, 100, 100, 100), marker(base_offset=600, producer_id=1, commit=True)])
    result = translate_range(replace(made, format=failing).task(0, 601))
    assert isinstance(result.error, StorageError)
    assert spans(result) == kept
    assert made.spooled() == []


@pytest.fixture
def unwritable(tmp_path: Path) -> Callable[[TranslateTask, str], None]:
    def forbid(task: TranslateTask, day: str) -> None:
        folder = Path(task.target.data_location.removeprefix("file://"))
        folder.mkdir(parents=True)
        (folder / f"ingest_day={day}").write_text("a file where a folder should be")

    return forbid


def test_a_failed_upload_ends_the_ranges_before_it(tmp_path: Path, unwritable: Callable[[TranslateTask, str], None]):
    made = bench(tmp_path, days(0, 100, 100, 100))
    task = made.task(0, 600)
    unwritable(task, "1970-01-02")
    result = translate_range(task)
    assert isinstance(result.error, StorageError)
    assert spans(result) == [(0, 200)]


@dataclass(frozen=True)
class DeniedStore:
    denial: type[StorageDenied] = StorageDenied
    seconds_left = None

    def upload(self, source: SpoolFile, path: str, *, expected: int) -> int:
        raise self.denial("can't upload the object: access denied", file=path, spooled=str(source))


def test_denied_file_is_kept_and_replaced_by_a_retry(tmp_path: Path):
    made = bench(tmp_path, days(0, 3))
    task = made.task(0, 6)
    denied = replace(task, target=replace(task.target, objects=DeniedStore(StorageDenied)))
    for _ in range(2):
        result = translate_range(denied)
        assert type(result.error) is StorageDenied
        assert result.ranges == ()
        kept = Path(result.error.context["spooled"])
        assert made.spooled() == ["kept/orders-4-00000000000000000000.parquet"] == [f"kept/{kept.name}"]


def test_credentials_that_ended_leave_nothing_in_the_spool(tmp_path: Path):
    """Retries begin elsewhere in a growing log: their kept files would fill the disk."""
    made = bench(tmp_path, days(0, 3))
    for start in (0, 2):
        task = made.task(start, 6)
        result = translate_range(replace(task, target=replace(task.target, objects=DeniedStore(CredentialsExpired))))
        assert type(result.error) is CredentialsExpired
        assert result.error.retryable
        assert "spooled" not in result.error.context
        assert result.ranges == ()
        assert made.spooled() == []


def epoch_marker(base: int, epoch: int) -> bytes:
    return patched(marker(base_offset=base, producer_id=1, commit=True), leader_epoch=epoch)


def test_marker_of_a_later_leader_sets_the_ranges_epoch(tmp_path: Path):
    log = [*days(0, 1), epoch_marker(2, 6), *days(3, 1), epoch_marker(5, 7)]
    made = bench(tmp_path, log)
    assert [(range_.end_offset, range_.leader_epoch) for range_ in translate_range(made.task(0, 6)).ranges] == [(6, 7)]
    full = replace(made, target_file_size=1)
    assert [(range_.end_offset, range_.leader_epoch) for range_ in translate_range(full.task(0, 6)).ranges] == [
        (5, 6),
        (6, 7),
    ]


@given(data=st.data())
def test_a_range_has_the_last_epoch_of_what_it_covers(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    log, covered, offset, epoch = [], [], 0, 0
    for step in data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=12)):
        epoch += step
        kind = data.draw(st.sampled_from(["records", "marker", "emptied"]))
        if kind == "records":
            log.append(batch(offset, Record(timestamp=data.draw(st.integers(0, 2)) * DAY), leader_epoch=epoch))
        elif kind == "marker":
            log.append(epoch_marker(offset, epoch))
        else:
            log.append(raw_batch([], base_offset=offset, leader_epoch=epoch, last_delta=0))
        covered.append((offset, epoch))
        offset += data.draw(st.integers(1, 3))
    cuts = data.draw(st.lists(st.integers(1, len(log)), max_size=3))
    size = data.draw(st.sampled_from([1, 1 << 20]))
    source = LogInMemory(log=log, cuts=cuts)
    result = translate_range(
        Bench(folder=tmp_path_factory.mktemp("epochs"), source=source, target_file_size=size).task(0, offset)
    )
    assert result.error is None
    expected = [max([2, *(at for base, at in covered if base < range_.end_offset)]) for range_ in result.ranges]
    assert [range_.leader_epoch for range_ in result.ranges] == expected


def test_workers_can_import_all_that_reads_and_writes_ahead() -> None:
    needed = (
        "archiver.kafka.range_reader",
        "archiver.storage.parquet.writer",
        "archiver.wire.decode",
        "schema_mapping.row",
    )
    run = f"import sys, {', '.join(MODULES)}; print(*(each for each in {needed!r} if each not in sys.modules))"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []
