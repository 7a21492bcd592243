"""A rebuild's ranges of unnamed rows."""

from __future__ import annotations

from typing import Any

from archiver.archive.deletes import DeleteFiles
from archiver.archive.mappings import KnownMappings
from archiver.archive.open_file import TopicStorage
from archiver.archive.table_files import ManifestReader
from archiver.storage.formats import FORMATS
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import SegmentMetadata
from archiver.upkeep.rebuild.unnamed_rows import UnnamedRows, VersionMappings
from catalog.iceberg.archive_table import ArchiveTable
from tests.support.archive.archived_rows import rows_of
from tests.support.archive.lake import TOPIC, Lake


def test_rows_without_a_range_are_unknown_offsets(lake: Lake, archive: Any) -> None:
    lake.add(archive.rows, archive.batch(rows_of(archive, range(40))), 0, 40)
    table = ArchiveTable(topic=TOPIC, iceberg=lake.load(TOPIC.topic))
    files = {file.path: file for file in ManifestReader().files(table.iceberg)}
    objects = ObjectStore.of({})
    mappings = KnownMappings(TOPIC.topic, VersionMappings({1: archive.rows.text}))
    footer = SegmentMetadata(rows=40, origin=None, mapping=archive.rows.text, schema_version=1, format_version=1)
    rows = UnnamedRows(
        table=table,
        storage=TopicStorage(
            deletes=DeleteFiles(objects, FORMATS), objects=objects, formats=FORMATS, mappings=mappings
        ),
        files=files,
        footers=dict.fromkeys(files, footer),
    )
    ranges = rows.complete([], set())
    assert ranges.ranges == ranges.unknown
    assert [(stored.partition, stored.offsets, stored.rows, stored.expected) for stored in ranges.unknown] == [
        (0, (0, 40), 40, 40)
    ]
    assert [stored.paths for stored in ranges.unknown] == [tuple(files)]
