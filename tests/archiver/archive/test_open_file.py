"""The reading of one file, as replay, the server and upkeep do it: damage is told, and ends no process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from archiver.archive.deletes import DeleteFiles
from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile, TopicStorage
from archiver.archive.table_files import Bounds, TableFile
from archiver.errors import BadSegment
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import RowRange, SegmentLayout, SegmentOrigin
from archiver.storage.spool_file import SpoolFile
from schema_mapping.errors import ContextError
from tests.support.archive.archived_rows import KnownMapping, rows_of
from tests.support.storage.footer_flips import all_flips, footer_start, judged, some_flips, without_checksum

ROWS = 50
ORIGIN = SegmentOrigin(cluster_id="c", topic="t", topic_id="", partition=0, start_offset=0, end_offset=ROWS)
EQUAL, TOLD, OTHER = range(3)


@pytest.fixture
def local(archive: Any, tmp_path: Path) -> Path:
    """A file of ours."""
    path = tmp_path / "ours.parquet"
    writer = FORMATS.written.start(SpoolFile.create(path), SegmentLayout.of(archive.rows, archive.properties))
    writer.write(archive.batch(rows_of(archive, range(ROWS))))
    writer.close(origin=ORIGIN, path="x", partition_value=0)
    return path


def records_of(archive: Any, path: Path) -> pa.Table:
    """All records that a replay of the file gives."""
    objects, wanted = ObjectStore.of({}), RowRange(partition=0, end_offset=ROWS, min_timestamp=-1)
    storage = TopicStorage(
        deletes=DeleteFiles(objects, FORMATS),
        objects=objects,
        formats=FORMATS,
        mappings=KnownMappings("t", KnownMapping(archive.rows)),
    )
    file = TableFile(
        path=path.as_uri(),
        format="parquet",
        rows=ROWS,
        size_bytes=path.stat().st_size,
        spec_id=0,
        partition_values=(),
        partitions=Bounds(0, 0),
        offsets=Bounds(0, ROWS - 1),
        latest=None,
    )
    opened = OpenFile.open(storage, file)
    try:
        found = [each for block in opened.reader.blocks(wanted) for each in opened.records(block, wanted)]
    finally:
        opened.close()
    return pa.concat_tables([pa.Table.from_batches(found)]) if found else pa.table({})


def judge_of(archive: Any, path: Path) -> Callable[[], int]:
    """Says whether the file's records are what they are at this moment, or an error is told."""
    sound = records_of(archive, path)
    assert sound.num_rows == ROWS

    def judge() -> int:
        try:
            return EQUAL if records_of(archive, path).equals(sound) else OTHER
        except ContextError as error:
            return OTHER if error.retryable else TOLD

    return judge


def test_a_flipped_bit_in_a_footer_is_told_and_changes_no_record(archive: Any, local: Path):
    """All of them, from the checksum to the end of the file. A bit of the mark in it takes only the checksum away."""
    flips = all_flips(local.read_bytes())
    found = judged(local, flips, judge_of(archive, local))
    assert [flip for flip, one in zip(flips, found, strict=True) if one == OTHER] == []
    start = footer_start(local.read_bytes())
    assert {at for (at, _), one in zip(flips, found, strict=True) if one == EQUAL} == set(range(start - 8, start))


def test_a_flipped_bit_in_a_footer_without_a_checksum_ends_no_process(archive: Any, local: Path):
    """As others write files. What is told is an error of this file; bounds and ids that are wrong aren't noticed."""
    local.write_bytes(without_checksum(local.read_bytes()))
    flips = some_flips(local.read_bytes(), 1_500)
    found = judged(local, flips, judge_of(archive, local))
    assert {EQUAL, TOLD} <= {*found}
    assert sum(one == OTHER for one in found) < len(found) // 20


def test_damage_in_a_footer_says_what_to_do(archive: Any, local: Path):
    hurt = bytearray(local.read_bytes())
    hurt[-100] ^= 1
    local.write_bytes(hurt)
    with pytest.raises(BadSegment, match="restore the file from a backup") as raised:
        records_of(archive, local)
    assert raised.value.context["file"] == local.as_uri()
    assert not raised.value.retryable
