"""Manifests of delete files, which pyiceberg doesn't write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self
from uuid import uuid4

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.table import Table


class DeleteManifest(ManifestWriterV2):
    """With version 3's fields of a file."""

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        schema = self._with_partition(3)
        return AvroOutputFile(self._output_file, schema, "manifest_entry", schema, self._meta)

    def add_entry(self, entry: ManifestEntry) -> Self:
        values = entry.data_file._data
        values += [None] * (len(DATA_FILE_TYPE[3].fields) - len(values))
        super().add_entry(entry)
        return self

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def add_delete_files(producer: Any, table: Table, files: Iterable[DataFile]) -> None:
    """Have the snapshot's producer write a manifest per partition spec besides the usual ones."""
    by_spec: dict[int, list[DataFile]] = {}
    for file in files:
        by_spec.setdefault(file.spec_id, []).append(file)
    snapshot_id, usual = producer.snapshot_id, producer._manifests
    added = [_written(table, snapshot_id, spec_id, group) for spec_id, group in by_spec.items()]
    producer._manifests = lambda: [*usual(), *added]


def _written(table: Table, snapshot_id: int, spec_id: int, files: Iterable[DataFile]) -> ManifestFile:
    output = table.io.new_output(f"{table.location()}/metadata/deletes-{uuid4()}.avro")
    with DeleteManifest(table.specs()[spec_id], table.schema(), output, snapshot_id, "deflate") as writer:
        for file in files:
            added = ManifestEntryStatus.ADDED
            writer.add_entry(ManifestEntry.from_args(status=added, snapshot_id=snapshot_id, data_file=file))
    return writer.to_manifest_file()
