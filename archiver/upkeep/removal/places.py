"""The partitions of files that a removal rewrites."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.manifest import ManifestContent

from archiver.archive.file_columns import values_of
from archiver.archive.manifests import live_entries, manifests_of
from archiver.archive.table_files import TableFile
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.partition_spec import tuple_of
from catalog.partitioning import PartitionTuple


def places_of(table: ArchiveTable, files: Iterable[TableFile]) -> dict[str, PartitionTuple]:
    """Return exact partitions by path, without files that left the table. Raises StorageError."""
    expected = {file.path: file.spec_id for file in files}
    snapshot = table.iceberg.current_snapshot()
    if not expected or snapshot is None:
        return {}
    specs, tuples, spec_ids = table.iceberg.metadata.specs(), dict[str, PartitionTuple](), {*expected.values()}
    for manifest in manifests_of(table.iceberg, snapshot):
        if manifest.content != ManifestContent.DATA or manifest.partition_spec_id not in spec_ids:
            continue
        spec = specs[manifest.partition_spec_id]
        for entry in live_entries(table.io, manifest):
            path = entry.data_file.file_path
            if path in expected and (partition := tuple_of(values_of(entry.data_file.partition), spec, table.schema)):
                tuples[path] = partition
    return tuples
