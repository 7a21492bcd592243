"""The first offset that stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from archiver.archive.table_files import TableFile, ValueBounds
from archiver.errors import BadSegment
from archiver.rewrite.target import RewriteTarget
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentLayout, SegmentOrigin
from archiver.storage.spool_file import SpoolFile
from archiver.upkeep.retire.edge import YoungOffsets, first_young_offsets
from tests.support.archive.archived_rows import rows_of
from tests.support.storage.parquet_pages import page_headers, without_page

ROWS = 50
INGESTED_MS = 1_700_000_000_000


@pytest.fixture
def local(archive: Any, tmp_path: Path) -> Path:
    path = tmp_path / "ours.parquet"
    origin = SegmentOrigin(cluster_id="c", topic="t", topic_id="", partition=0, start_offset=0, end_offset=ROWS)
    writer = FORMATS.written.start(SpoolFile.create(path), SegmentLayout.of_mapping(archive.rows, archive.properties))
    writer.write(archive.batch(rows_of(archive, range(ROWS))))
    writer.close(origin=origin, path="x")
    return path


def young(archive: Any, path: Path, time_ms: int) -> YoungOffsets:
    file = TableFile(
        path=path.as_uri(),
        format="parquet",
        rows=ROWS,
        size_bytes=path.stat().st_size,
        spec_id=0,
        partition_values=(),
        partitions=ValueBounds(0, 0),
        offsets=ValueBounds(0, ROWS - 1),
        latest=None,
    )
    target = RewriteTarget(
        topic="t",
        mappings={1: archive.mapping},
        table_properties={},
        bloom_filters={},
        objects=ObjectStore.of({}),
        formats=FORMATS,
        spool=path.parent,
    )
    return first_young_offsets(time_ms, {0: ROWS, 1: 7}, [file], target)


def test_rows_from_the_time_on_stay(archive: Any, local: Path):
    assert young(archive, local, INGESTED_MS) == YoungOffsets(offsets={0: 0, 1: 7}, failures={})
    assert young(archive, local, INGESTED_MS + 1) == YoungOffsets(offsets={0: ROWS, 1: 7}, failures={})


@pytest.mark.parametrize("column", ["kafka.partition", "kafka.offset", "kafka.ingest_timestamp"])
def test_unreadable_page_rows_are_not_taken_as_old(archive: Any, local: Path, column: str):
    data = local.read_bytes()
    (page,) = [header for header in page_headers(data) if header.is_data and header.column == column]
    local.write_bytes(without_page(data, page))
    result = young(archive, local, INGESTED_MS + 1)
    assert result.offsets == {0: 0, 1: 7}, "a file that can't be read may be young; the other partition doesn't wait"
    (failure,) = result.failures.values()
    assert isinstance(failure, BadSegment)
    assert failure.context["partition"] == 0
    assert list(result.failures) == [failure.context["file"]] == [local.as_uri()]
