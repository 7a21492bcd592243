"""Recording file values fails no job."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from archiver.commit.file_values import keep_values, restore_values
from archiver.storage.objects import ObjectStore
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import SegmentLayout
from archiver.storage.spool_file import SpoolFile
from catalog.errors import RegistryDenied
from catalog.model import DataFileInfo, TopicRow
from catalog.partitioning import PartitionTuple
from catalog.registry import Registry
from catalog.value_terms import ValueTerms, term_of

TOPIC = TopicRow(id=1, cluster_id="c", topic="orders", topic_id=None, table="kafka.orders")
KEY_ID = 100


class NotedValues:
    def __init__(self, *, is_denied: bool = False) -> None:
        self.files: dict[str, ValueTerms] = {}
        self.is_denied = is_denied

    def note(self, topic: TopicRow, files: Mapping[str, ValueTerms]) -> None:
        self._check()
        self.files |= files

    def missing(self, topic: TopicRow, paths: Sequence[str]) -> list[str]:
        self._check()
        return [path for path in paths if path not in self.files]

    def _check(self) -> None:
        if self.is_denied:
            raise RegistryDenied("the user may not write", table="file_values")

    @property
    def registry(self) -> Registry:
        return cast("Registry", SimpleNamespace(values=self))


@pytest.fixture
def file(tmp_path: Path, archive: Any) -> DataFileInfo:
    path = tmp_path / "rows.parquet"
    rows = [
        archive.row(offset=at, key=b"k%d" % (at % 3), value=random.Random(at).randbytes(90), headers=[])
        for at in range(500)
    ]
    with closing(SpoolFile.create(path)) as spooled:
        writer = ParquetFormat().start(spooled, SegmentLayout.of_mapping(archive.rows, {}))
        writer.write(archive.batch(rows))
        return writer.close(origin=None, path=path.as_uri(), partition=PartitionTuple.of_time(0))


def test_values_of_new_files_are_recorded(file: DataFileInfo) -> None:
    values = NotedValues()
    keep_values(
        values.registry,
        TOPIC,
        [file, DataFileInfo(path="old", size_bytes=1, rows=1, partition=PartitionTuple.of_time(0))],
    )
    assert values.files == {file.path: file.values}
    assert file.values is not None
    assert KEY_ID in file.values.columns
    assert {term_of(KEY_ID, b"k%d" % number) for number in range(3)} <= set(file.values.terms)


def test_restored_values_are_those_of_the_writer(file: DataFileInfo, caplog: pytest.LogCaptureFixture) -> None:
    values = NotedValues()
    lost = file.path.replace("rows", "lost")
    restore_values(values.registry, TOPIC, {file.path: ParquetFormat(), lost: ParquetFormat()}, ObjectStore(attempts=1))
    assert values.files == {file.path: file.values}
    assert "orders: the values of the file can't be read" in caplog.text
    Path(file.path.removeprefix("file://")).unlink()
    restore_values(values.registry, TOPIC, {file.path: ParquetFormat()}, ObjectStore(attempts=1))  # isn't opened again


def test_a_registry_that_denies_fails_nothing(file: DataFileInfo, caplog: pytest.LogCaptureFixture) -> None:
    denied = NotedValues(is_denied=True).registry
    keep_values(denied, TOPIC, [file])
    restore_values(denied, TOPIC, {file.path: ParquetFormat()}, ObjectStore())
    assert "orders: the values of new files aren't recorded, so searches open more files" in caplog.text
    assert "orders: searches will open more files" in caplog.text
