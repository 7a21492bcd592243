"""What the tasks of a removal need of a topic's table."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.manifest import ManifestContent

from archiver.archive.file_columns import values_of
from archiver.archive.manifests import live_entries, manifests_of
from archiver.archive.table_files import TableFile
from archiver.config import Config
from archiver.rewrite.target import RewriteTarget
from archiver.storage.formats import SegmentFormats
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.partition_spec import tuple_of
from catalog.partitioning import PartitionTuple
from catalog.registry import Registry


def removal_target(config: Config, table: ArchiveTable, registry: Registry, formats: SegmentFormats) -> RewriteTarget:
    """The target of tasks on this table."""
    return RewriteTarget.of(table, registry.ledger.load(table.topic).versions, config, formats)


def places_of(table: ArchiveTable, files: Iterable[TableFile]) -> dict[str, PartitionTuple]:
    """The partitions that files are in, by path: manifests have them exactly, whoever wrote the files.

    Left out are files that the table no longer has. Raises the leaves of StorageError.
    """
    wanted = {file.path: file.spec_id for file in files}
    snapshot = table.iceberg.current_snapshot()
    if not wanted or snapshot is None:
        return {}
    specs, found, spec_ids = table.iceberg.metadata.specs(), dict[str, PartitionTuple](), {*wanted.values()}
    for manifest in manifests_of(table.iceberg, snapshot):
        if manifest.content != ManifestContent.DATA or manifest.partition_spec_id not in spec_ids:
            continue
        spec = specs[manifest.partition_spec_id]
        for entry in live_entries(table.io, manifest):
            path = entry.data_file.file_path
            if path in wanted and (place := tuple_of(values_of(entry.data_file.partition), spec, table.schema)):
                found[path] = place
    return found
