"""Ranges from plain Arrow columns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.files.range_files import FileTarget
from archiver.files.range_writer import RangeWriter
from archiver.files.records import CONTENT_COLUMNS, LOG_COLUMNS, Batches, Records
from archiver.files.upload import Uploader
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import SegmentLayout
from archiver.storage.spool import TaskSpool
from catalog.model import DataFileInfo, TranslatedRange
from schema_mapping import RawMapping, RowMapping
from tests.support.kafka.logs import BY_DAY
from tests.support.kafka.record_digest import SeenRecord, digest

DAY = 86_400_000
ROW = RowMapping(key=RawMapping(raw_id=100), value=RawMapping(raw_id=101), schema_version=3)

CONTENT = [
    {"offset": 7, "timestamp": 1_700_000_000_123, "key": b"a", "value": b"\x00\xff", "headers": []},
    {"offset": 8, "timestamp": -1, "key": None, "value": b"", "headers": [{"key": b"h", "value": None}]},
    {"offset": 10, "timestamp": -5, "key": b"", "value": None, "headers": [{"key": b"h", "value": b"1"}] * 2},
    {"offset": 11, "timestamp": 2**62, "key": b"d", "value": b"v", "headers": [{"key": b"\xff", "value": b""}]},
]


def target(folder: Path, *, target_file_size: int = 1 << 20) -> FileTarget:
    return FileTarget(
        topic="sensors",
        topic_id="",
        cluster_id="here",
        row=ROW,
        layout=SegmentLayout.of_mapping(ROW, {}),
        on_parse_error="pass_through",
        data_location=f"file://{folder}/table",
        partitioning=BY_DAY,
        target_file_size=target_file_size,
        objects=ObjectStore.of({}, attempts=1),
        format=ParquetFormat(),
    )


def records(
    content: Sequence[dict[str, Any]],
    *,
    rows: Sequence[int] = (),
    times: Sequence[int] = (),
    log: pa.RecordBatch | None = None,
    start: int | None = None,
    end: int | None = None,
) -> Records:
    counts = np.array(rows or [len(content)], np.int64)
    offsets = np.array([row["offset"] for row in content], np.int64)
    lasts = offsets[np.cumsum(counts) - 1]
    return Records(
        start_offset=int(offsets[0]) if start is None else start,
        end_offset=int(offsets[-1]) + 1 if end is None else end,
        content=pa.RecordBatch.from_pylist(list(content), CONTENT_COLUMNS),
        batches=Batches(
            first_offset=offsets[np.cumsum(counts) - counts],
            last_offset=lasts,
            rows=counts,
            times=np.array(times or [0] * len(counts), np.int64),
        ),
        log=log,
    )


def written(to: FileTarget, folder: Path, *pieces: Records) -> list[TranslatedRange]:
    with TaskSpool(folder / "spool") as spool, Uploader(to.objects, spool) as uploader:
        writer = RangeWriter(to, spool, uploader, partition=2, spool_bytes=1 << 30)
        for piece in pieces:
            writer.write(piece)
        writer.end()
        uploader.wait()
    return uploader.uploaded


def rows_of(file: DataFileInfo) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.ParquetFile(file.path.removeprefix("file://")).read().to_pylist()
    return rows


def content_of(row: dict[str, Any]) -> dict[str, Any]:
    event, raw = row["kafka"]["event_timestamp"], row["kafka"]["raw_timestamp"]
    if raw is None:
        raw = -1 if event is None else (event - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return {
        "offset": row["kafka"]["offset"],
        "timestamp": raw,
        "key": row["key"] and row["key"]["__raw__"],
        "value": row["val"] and row["val"]["__raw__"],
        "headers": [
            {"key": header["__raw_key__"] or header["key"].encode(), "value": header["value"]}
            for header in row["headers"]
        ],
    }


def test_the_records_of_a_range_come_back_from_its_file(tmp_path: Path) -> None:
    times = [3 * DAY, 3 * DAY - 300_000]
    pieces = (
        records(CONTENT[:1], start=5, times=times[:1]),
        records(CONTENT[1:], start=8, rows=[1, 2], times=times, end=20),
    )
    (done,) = written(target(tmp_path), tmp_path, *pieces)
    assert (done.topic, done.partition, done.start_offset, done.end_offset) == ("sensors", 2, 5, 20)
    assert (done.schema_version, done.leader_epoch, done.rows) == (3, -1, 4)
    assert done.file is not None
    rows = rows_of(done.file)
    assert [content_of(row) for row in rows] == CONTENT
    assert [(row["kafka"]["batch_start"], row["kafka"]["batch_end"]) for row in rows] == [
        (7, 7),
        (8, 8),
        *[(10, 11)] * 2,
    ]
    assert {row["kafka"]["ingest_timestamp"] for row in rows} == {datetime(1970, 1, 4, tzinfo=UTC)}
    assert done.file.path.startswith(f"file://{tmp_path}/table/ingest_day=1970-01-04/sensors-2-{5:020d}-")
    assert done.file.digest == digest(
        SeenRecord(
            partition=2,
            offset=row["offset"],
            timestamp_type=0,
            timestamp=row["timestamp"],
            key=row["key"],
            value=row["value"],
            headers=tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row in CONTENT
    )
    with ParquetFormat().open(ObjectStore.of({}), done.file.path) as reader:
        assert reader.metadata.digest == done.file.digest
        assert reader.metadata.origin is not None
        assert (reader.metadata.origin.start_offset, reader.metadata.origin.end_offset) == (5, 20)


def test_without_a_log_rows_have_create_times_and_no_epoch(tmp_path: Path) -> None:
    (done,) = written(target(tmp_path), tmp_path, records(CONTENT[:1]))
    assert done.file is not None
    (row,) = rows_of(done.file)
    names = ("timestamp_type", "append_timestamp", "leader_epoch", "producer_id", "producer_epoch", "base_sequence")
    assert [row["kafka"][name] for name in (*names, "attributes")] == [0, None, -1, -1, -1, -1, 0]


def test_a_source_may_say_what_a_log_says(tmp_path: Path) -> None:
    said = {
        "timestamp_type": 1,
        "append_timestamp": 5_000,
        "leader_epoch": 4,
        "producer_id": 1 << 40,
        "producer_epoch": 6,
        "base_sequence": 7,
        "attributes": 8,
    }
    log = pa.RecordBatch.from_pylist([said], LOG_COLUMNS)
    (done,) = written(target(tmp_path), tmp_path, records(CONTENT[:1], log=log))
    assert done.file is not None
    (row,) = rows_of(done.file)
    expected = said | {"append_timestamp": datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)}
    assert {name: row["kafka"][name] for name in said} == expected


@settings(max_examples=40)
@given(data=st.data())
def test_all_records_come_back_from_ranges_without_gaps(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("ranges")
    texts = st.none() | st.binary(max_size=20)
    headers = st.lists(st.fixed_dictionaries({"key": st.binary(max_size=3), "value": texts}), max_size=2)
    pieces, expected, at = [], [], data.draw(st.integers(0, 9))
    for _ in range(data.draw(st.integers(1, 4))):
        rows = data.draw(st.lists(st.integers(1, 3), max_size=4))
        times = [data.draw(st.integers(0, 3)) * DAY for _ in rows]
        content, start = [], at
        for _ in range(sum(rows)):
            at += data.draw(st.integers(0, 1))
            time = data.draw(st.integers(-1, 1 << 45))
            content.append(
                {"offset": at, "timestamp": time, "key": data.draw(texts), "value": data.draw(texts)}
                | {"headers": data.draw(headers)}
            )
            at += 1
        at += data.draw(st.integers(0, 2))
        expected += content
        pieces.append(
            records(content, rows=rows, times=times, start=start, end=at) if rows else Records.none(start, at)
        )
    size = data.draw(st.sampled_from([1, 1 << 20]))
    ranges = written(target(folder, target_file_size=size), folder, *pieces)
    assert [content_of(row) for done in ranges for file in done.files for row in rows_of(file)] == expected
    borders = [border for done in ranges for border in (done.start_offset, done.end_offset)]
    assert borders[1:-1:2] == borders[2::2]
    assert [*borders[:1], *borders[-1:]] == ([pieces[0].start_offset, at] if at > pieces[0].start_offset else [])


def test_records_must_follow_those_before(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="records must follow offset 9, and start at 10"):
        written(target(tmp_path), tmp_path, records(CONTENT[:2]), records(CONTENT[2:], start=10))


def test_no_kafka_is_needed_to_write_files() -> None:
    """A server that accepts records may start without it."""
    run = "import sys, archiver.files.range_writer; print(*(name for name in sys.modules if 'kafka.' in name))"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []
