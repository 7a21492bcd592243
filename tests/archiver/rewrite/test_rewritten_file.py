"""Uploaded files have the written records."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import OpenFile
from archiver.errors import UpkeepError
from archiver.rewrite.rewritten_file import RewrittenFile, check_footer
from archiver.rewrite.target import RewriteTarget
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import SegmentLayout
from archiver.storage.spool import TaskSpool
from archiver.wire.record_digest import RecordDigest
from tests.support.archive.archived_rows import rows_of
from tests.support.archive.lake import Lake

FOLDER = "data"


@pytest.fixture
def target(archive: Any, tmp_path: Path) -> RewriteTarget:
    return RewriteTarget(
        topic="orders",
        mappings={1: archive.rows.text},
        table_properties={},
        bloom_filters={},
        objects=ObjectStore.of({}),
        formats=FORMATS,
        spool=tmp_path / "spool",
    )


def layout_of(target: RewriteTarget, archive: Any) -> SegmentLayout:
    return target.layout(archive.rows.arrow_schema, 1, target.mappings)


@pytest.mark.parametrize("digest", [None, RecordDigest()])
def test_a_file_with_another_digest_is_refused(
    target: RewriteTarget, archive: Any, tmp_path: Path, digest: RecordDigest | None
) -> None:
    rows = archive.batch(rows_of(archive, range(5)))
    with TaskSpool(target.spool) as spool:
        with RewrittenFile(target, spool, layout_of(target, archive)) as file:
            file.write(rows)
            file.close((tmp_path / FOLDER).as_uri(), (0, 0), digest=digest)
        with pytest.raises(UpkeepError, match="would not give back exactly the records") as refused:
            file.check("old.parquet")
    assert refused.value.context["file"] == "old.parquet"
    assert not (tmp_path / FOLDER).exists()


def test_an_error_leaves_no_file(target: RewriteTarget, archive: Any) -> None:
    with TaskSpool(target.spool) as spool:
        with pytest.raises(ValueError, match="stop"), RewrittenFile(target, spool, layout_of(target, archive)):  # noqa: PT012
            msg = "stop"
            raise ValueError(msg)
        assert not list(target.spool.rglob("*.parquet"))


def test_a_damaged_file_is_named() -> None:
    check_footer("old.parquet", None, RecordDigest())
    check_footer("old.parquet", RecordDigest().text, RecordDigest())
    with pytest.raises(UpkeepError, match="it was damaged; restore it from a backup"):
        check_footer("old.parquet", "f" * 32, RecordDigest())


def test_a_file_names_its_largest_record(target: RewriteTarget, archive: Any, lake: Lake) -> None:
    rows = [archive.row(offset=0, partition=0, key=b"k", value=b"x" * 5_000, headers=[(b"h", b"y" * 100)], timestamp=1)]
    rows.append(archive.row(offset=1, partition=0, key=None, value=None, headers=[], timestamp=1))
    path = lake.add(archive.rows, archive.batch(rows), 0, 2)
    assert path is not None
    store = ObjectStore.of({})
    with TaskSpool(target.spool) as spool:
        with (
            closing(OpenFile.whole(ParquetFormat(), store, path, KnownMappings("orders"))) as old,
            RewrittenFile(target, spool, layout_of(target, archive)) as file,
        ):
            for batch, records in old.all_records():
                file.write(batch, records)
            file.close(lake.folder.as_uri(), (0, 0))
        file.check(path)
        with ParquetFormat().open(store, file._local.uri) as reader:
            largest = reader.metadata.largest_record
    assert largest is not None
    assert 5_100 < largest < 5_300
