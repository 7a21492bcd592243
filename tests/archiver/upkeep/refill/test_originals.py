"""The description of a lost file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archiver.ingest.task.work import translate_range
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentLayout, SegmentOrigin
from archiver.storage.spool_file import SpoolFile
from archiver.upkeep.refill.originals import originals
from catalog.journal_entries import JournaledCommit
from catalog.model import NO_DETAILS, DataFileInfo, TranslatedRange
from catalog.partitioning import PartitionTuple
from tests.support.kafka.logs import DAY, Bench, LogInMemory, batch
from tests.support.kafka.record_batches import Record

OBJECTS = ObjectStore.of({}, attempts=1)


@pytest.fixture
def lost(tmp_path: Path) -> TranslatedRange:
    bench = Bench(folder=tmp_path, source=LogInMemory(log=[batch(0, *[Record(timestamp=DAY, value=b"v")] * 3)]))
    task = bench.task(0, 3)
    (made,) = translate_range(task).ranges
    return made


def found(one: TranslatedRange) -> tuple[DataFileInfo, ...]:
    return originals([one], OBJECTS, FORMATS, {}).get(one.id, ())


def test_a_file_that_is_as_described_comes_back_as_described(lost: TranslatedRange):
    assert lost.file is not None
    assert lost.file.partition.by == "day(13)"
    assert found(lost) == lost.files


def test_forgotten_column_notes_are_read_from_the_file(lost: TranslatedRange):
    """Nothing else changes, in particular not the file's partition."""
    assert lost.file is not None
    forgotten = DataFileInfo.from_json({**lost.file.to_json(), **NO_DETAILS})
    assert found(replace(lost, files=(forgotten,))) == lost.files


def test_unjournaled_partition_is_read_from_the_file(archive: Any, tmp_path: Path):
    """Values of columns are kept in no journal, so a rebuilt registry has none."""
    partition = PartitionTuple("day(13), identity(101)", (b"\x01\0\0\0", b"v"))
    path = tmp_path / "ours.parquet"
    writer = FORMATS.written.start(SpoolFile.create(path), SegmentLayout.of_mapping(archive.rows, archive.properties))
    writer.write(archive.batch([archive.row(offset=0), archive.row(offset=1)]))
    origin = SegmentOrigin(cluster_id="c", topic="t", topic_id="", partition=0, start_offset=0, end_offset=2)
    file = writer.close(origin=origin, path=path.as_uri(), partition=partition)
    range_ = TranslatedRange(
        id="R",
        topic="t",
        partition=0,
        start_offset=0,
        end_offset=2,
        schema_version=1,
        leader_epoch=0,
        files=(file,),
        created_ms=0,
    )
    kept = JournaledCommit.from_json(JournaledCommit(commit_id="C", ranges=(range_,)).to_json()).ranges[0]
    assert kept.file is not None
    assert (file.partition, kept.file.partition) == (partition, PartitionTuple(partition.by, None))
    (found_file,) = originals([kept], OBJECTS, FORMATS, archive.properties)["R"]
    assert found_file == file


@pytest.mark.parametrize("change", [{"size_bytes": 1}, {"rows": 2}, {"digest": "0" * 32}])
def test_a_file_that_is_not_as_described_counts_as_gone(lost: TranslatedRange, change: dict[str, object]):
    assert lost.file is not None
    assert found(replace(lost, files=(replace(lost.file, **change),))) == ()
