"""Files without bounds in their manifests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archiver.archive.table_files import TableFile, ValueBounds
from archiver.archive.topic_files import TopicFiles
from archiver.errors import BadSegment
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentLayout, SegmentOrigin
from archiver.storage.spool_file import SpoolFile
from archiver.upkeep.removal.components import Component
from archiver.upkeep.removal.row_bounds import BoundsOfRows, lacks_bounds
from archiver.upkeep.retire.plan import retirement
from catalog.registry.removable import RemovableRange
from tests.support.archive.archived_rows import rows_of

INGESTED_MICROS = 1_700_000_000_000_000


def written(archive: Any, path: Path, offsets: list[int]) -> TableFile:
    origin = SegmentOrigin(cluster_id="c", topic="t", topic_id="", partition=0, start_offset=0, end_offset=99)
    writer = FORMATS.written.start(SpoolFile.create(path), SegmentLayout.of_mapping(archive.rows, archive.properties))
    writer.write(archive.batch(rows_of(archive, offsets)))
    writer.close(origin=origin, path="x")
    return TableFile(
        path=path.as_uri(),
        format="parquet",
        rows=len(offsets),
        size_bytes=path.stat().st_size,
        spec_id=0,
        partition_values=(),
        partitions=None,
        offsets=None,
        latest=None,
    )


@pytest.fixture
def files(archive: Any) -> TopicFiles:
    return TopicFiles(topic="t", objects=ObjectStore.of({}), formats=FORMATS, mappings={1: archive.mapping})


def test_rows_give_the_bounds(archive: Any, files: TopicFiles, tmp_path: Path) -> None:
    first, second = (written(archive, tmp_path / name, [7, 3, 12]) for name in ("a.parquet", "b.parquet"))
    stated = replace(second, partitions=ValueBounds(0, 0), offsets=ValueBounds(3, 12))
    bounds = BoundsOfRows()
    bounded = bounds.of([first, stated], files)
    assert list(bounded) == [first.path]
    file = bounded[first.path]
    assert (file.partitions, file.offsets, file.latest_ingest) == (
        ValueBounds(0, 0),
        ValueBounds(3, 12),
        INGESTED_MICROS,
    )
    assert bounds.failures == {}
    assert not lacks_bounds(file)


def test_a_file_is_read_once_and_keeps_its_newest_deletes(archive: Any, files: TopicFiles, tmp_path: Path) -> None:
    file = written(archive, tmp_path / "a.parquet", [3, 4])
    bounds = BoundsOfRows()
    bounds.of([file], files)
    (tmp_path / "a.parquet").unlink()
    later = replace(file, spec_id=4)
    assert bounds.of([later], files)[file.path].spec_id == 4


def test_a_file_that_cannot_be_read_has_no_bounds(archive: Any, files: TopicFiles, tmp_path: Path) -> None:
    file = written(archive, tmp_path / "a.parquet", [3, 4])
    (tmp_path / "a.parquet").write_bytes(b"PAR1" * 20)
    bounds = BoundsOfRows()
    assert bounds.of([file], files) == {}
    (failure,) = bounds.failures.values()
    assert isinstance(failure, BadSegment)
    assert (failure.context["topic"], failure.context["file"]) == ("t", file.path)


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("start", [0, 5])
def test_a_file_without_bounds_that_keeps_a_partition_is_named(*, rows: bool, start: int) -> None:
    """Its range begins at `start`; at the partition's first offset, nothing is left to retire."""
    unread = TableFile(
        path="s3://b/unread.parquet",
        format="parquet",
        rows=20,
        size_bytes=1,
        spec_id=0,
        partition_values=(),
        partitions=None,
        offsets=None,
        latest=None,
    )
    whole = RemovableRange(
        id="r", partition=0, start_offset=start, end_offset=20, paths=("s3://b/gone.parquet",), rows=20, expected=20
    )
    planned = retirement({0: 10}, ranges=[whole], files=[unread], holds=(), known={}, rows=rows)
    assert planned.kept == {0: unread.path}
    assert (planned.first_offsets, planned.going) == ({}, ())


def test_a_file_with_the_bounds_of_its_rows_is_written_again() -> None:
    whole = RemovableRange(
        id="r", partition=0, start_offset=0, end_offset=20, paths=("s3://b/gone.parquet",), rows=20, expected=20
    )
    read = TableFile(
        path="s3://b/read.parquet",
        format="parquet",
        rows=20,
        size_bytes=1,
        spec_id=0,
        partition_values=(),
        partitions=ValueBounds(0, 0),
        offsets=ValueBounds(0, 19),
        latest=None,
    )
    planned = retirement({0: 10}, ranges=[whole], files=[read], holds=(), known={}, rows=True)
    edge = Component(ranges=(whole,), files=(read,), recorded=whole.paths, has_foreign=True)
    assert (planned.kept, planned.first_offsets, planned.edges) == ({}, {0: 10}, (edge,))
