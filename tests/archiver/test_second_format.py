"""A table of an unknown format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyiceberg.manifest import FileFormat
from pyiceberg.table.update import update_table_metadata

from archiver.commit.find_holes import search
from archiver.errors import UnknownFormat
from archiver.ingest.task.work import translate_range
from archiver.rewrite.target import RewriteTarget
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import RowRange, SegmentFormat
from archiver.upkeep.rebuild.unreferenced import Ends, continuing_ranges
from archiver.upkeep.refill.copying import RowCopier
from archiver.upkeep.refill.originals import originals
from catalog.errors import NewerFormat
from catalog.iceberg.append import prepare
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import DataFileInfo, TranslatedRange, new_id
from catalog.ranges.holes import ExpectedFile, ExpectedRange
from tests.support.archive.lake import TOPIC, Lake
from tests.support.kafka.logs import RAW, Bench, LogInMemory, batch
from tests.support.kafka.record_batches import Record
from tests.support.storage.arrow_format import ArrowFormat

PARTITION = 4
NEW = SegmentFormats(written=ArrowFormat(), others=(ParquetFormat(),))
OBJECTS = ObjectStore.of({}, attempts=1)


@pytest.fixture
def table(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "table", RAW)


def archived(folder: Path, start: int, batches: int, form: SegmentFormat) -> list[TranslatedRange]:
    ranges: list[TranslatedRange] = []
    for base in range(start, start + 2 * batches, 2):
        log = [batch(base, *[Record(timestamp=0, key=b"k", value=b"%d" % base)] * 2)]
        task = Bench(folder=folder, source=LogInMemory(log=log), format=form).task(base, base + 2)
        result = translate_range(replace(task, target=replace(task.target, cluster_id=TOPIC.cluster_id)))
        assert result.error is None
        ranges += [TranslatedRange.from_json(json.loads(json.dumps(range_.to_json()))) for range_ in result.ranges]
    return ranges


def commit(table: Lake, ranges: Iterable[TranslatedRange]) -> None:
    attempt = prepare(loaded(table), list(ranges), change=None, commit_id=new_id())
    table.metadata = update_table_metadata(table.metadata, attempt.updates, enforce_validation=True)


def loaded(table: Lake) -> ArchiveTable:
    return ArchiveTable(topic=TOPIC, iceberg=table.load(TOPIC.topic))


def values(table: Lake, formats: SegmentFormats) -> list[tuple[int, bytes]]:
    batches = table.archive(formats=formats).records(PARTITION)
    return [(row["offset"], row["value"]) for chunk in batches for row in chunk.to_pylist()]


def expected(start: int, end: int) -> list[tuple[int, bytes]]:
    return [(offset, b"%d" % (offset - (offset - start) % 2)) for offset in range(start, end)]


def test_records_come_back_from_files_of_another_format(tmp_path: Path, table: Lake):
    ranges = archived(tmp_path, 10, 3, ArrowFormat())
    assert [(range_.file.format, range_.file.path[-6:]) for range_ in ranges if range_.file] == [("orc", ".arrow")] * 3
    commit(table, ranges)
    assert {file.file_format for file in table.files()} == {FileFormat.ORC}, "Iceberg has no word for Arrow files"
    assert values(table, NEW) == expected(10, 16)


def test_a_table_may_hold_files_of_several_formats(tmp_path: Path, table: Lake):
    commit(table, archived(tmp_path, 0, 2, ParquetFormat()))
    commit(table, archived(tmp_path, 4, 2, ArrowFormat()))
    assert [file.file_format.value for file in table.files()] == ["ORC", "ORC", "PARQUET", "PARQUET"]
    assert values(table, NEW) == expected(0, 8)
    with pytest.raises(UnknownFormat, match="format='orc'"):
        values(table, FORMATS)


def test_holes_are_looked_for_in_files_of_any_format(tmp_path: Path, table: Lake):
    ranges = archived(tmp_path, 0, 2, ArrowFormat())
    commit(table, ranges)
    ranges_ = [_expected(range_) for range_ in ranges]
    assert search(loaded(table), ranges_, {}, formats=NEW) == ()
    beside = replace(ranges_[1], files=(ExpectedFile(path="file:///gone.arrow", rows=3),), end_offset=5, rows=3)
    (hole,) = search(loaded(table), [ranges_[0], beside], {}, formats=NEW)
    assert (hole.start_offset, hole.end_offset, hole.rows) == (4, 5, 1)


def test_uploads_are_found_again_whatever_their_format(tmp_path: Path, table: Lake):
    first, second = archived(tmp_path, 0, 1, ParquetFormat()), archived(tmp_path, 2, 2, ArrowFormat())
    ends = Ends(reached={}, starts={PARTITION: {0}})
    continued = continuing_ranges(loaded(table), OBJECTS, NEW, versions=frozenset({RAW.schema_version}), ends=ends)
    assert [range_.id for range_ in continued.ranges] == [uploaded.id for uploaded in (*first, *second)]
    assert [range_.file.format for range_ in continued.ranges if range_.file] == ["parquet", "orc", "orc"]
    with pytest.raises(UnknownFormat, match=r"\.arrow"):
        continuing_ranges(loaded(table), OBJECTS, FORMATS, versions=frozenset({RAW.schema_version}), ends=ends)


def test_rows_are_copied_from_one_format_to_the_other(tmp_path: Path):
    ranges = archived(tmp_path, 0, 1, ParquetFormat())
    ((source,),) = originals(ranges, OBJECTS, NEW, {}).values()
    copier = RowCopier(
        RewriteTarget(
            topic=TOPIC.topic,
            objects=OBJECTS,
            formats=NEW,
            spool=tmp_path / "spool",
            mappings={},
            table_properties={},
            bloom_filters={},
        )
    )
    row_range = RowRange(partition=PARTITION, start_offset=0, end_offset=2)
    copied = copier.copy(source, row_range, without=np.array([0]))
    assert copied.file is not None
    assert (copied.rows, copied.file.rows, copied.file.format) == (2, 1, "orc")
    again = copier.copy(copied.file, row_range, without=np.array([], np.int64))
    assert again.digest == copied.file.digest


def test_a_format_that_iceberg_has_no_name_for_is_not_committed(table: Lake):
    for name in ("arrow", "puffin"):
        range_ = replace(_range(), files=(DataFileInfo(path="f", size_bytes=1, rows=1, format=name),))
        with pytest.raises(NewerFormat, match=f"format='{name}'"):
            commit(table, [range_])


def _range() -> TranslatedRange:
    return TranslatedRange(
        id=new_id(),
        topic=TOPIC.topic,
        partition=PARTITION,
        start_offset=0,
        end_offset=1,
        schema_version=RAW.schema_version,
        leader_epoch=0,
        files=(),
        created_ms=0,
    )


def _expected(one: TranslatedRange) -> ExpectedRange:
    assert one.file is not None
    return ExpectedRange(
        id=one.id,
        partition=one.partition,
        start_offset=one.start_offset,
        end_offset=one.end_offset,
        files=(ExpectedFile(path=one.file.path, rows=one.file.rows),),
        rows=one.file.rows,
        file_rows=one.file.rows,
        digest=one.file.digest,
    )
