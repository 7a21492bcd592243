"""pyiceberg's snapshot producers, changed to write each added file into a manifest of its own partition spec.

pyiceberg writes all added files to one manifest of the table's current spec, so a partition value of another spec would
be read as one of the current spec.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import TableProperties, Transaction
from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update.snapshot import _MergeAppendFiles, _OverwriteFiles, _SnapshotProducer

_SUMMARY_LIMIT: Final = TableProperties.WRITE_PARTITION_SUMMARY_LIMIT

if TYPE_CHECKING:
    _Producer = _SnapshotProducer[Any]
else:
    _Producer = object


class _UnderOwnSpecs(_Producer):
    def _manifests(self) -> list[ManifestFile]:
        added = self._added_data_files
        by_spec: dict[int, list[DataFile]] = defaultdict(list)
        for file in added:
            by_spec[file.spec_id].append(file)
        self._added_data_files = by_spec.pop(self._transaction.table_metadata.default_spec_id, [])
        try:
            others = [self._added_manifest(spec_id, files) for spec_id, files in sorted(by_spec.items())]
            return [*others, *super()._manifests()]
        finally:
            self._added_data_files = added

    def _added_manifest(self, spec_id: int, files: list[DataFile]) -> ManifestFile:
        with self.new_manifest_writer(self.spec(spec_id)) as writer:
            for file in files:
                entry = ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED,
                    snapshot_id=self._snapshot_id,
                    sequence_number=None,
                    file_sequence_number=None,
                    data_file=file,
                )
                writer.add(entry)
        return writer.to_manifest_file()

    def _summary(self, snapshot_properties: dict[str, str] | None = None) -> Summary:
        metadata = self._transaction.table_metadata
        specs, schema = metadata.specs(), metadata.schema()
        limit = metadata.properties.get(_SUMMARY_LIMIT, TableProperties.WRITE_PARTITION_SUMMARY_LIMIT_DEFAULT)
        collector = SnapshotSummaryCollector(partition_summary_limit=int(limit))
        for file in self._added_data_files:
            collector.add_file(file, schema=schema, partition_spec=specs[file.spec_id])
        for file in self._deleted_data_files:
            collector.remove_file(file, schema=schema, partition_spec=specs[file.spec_id])
        parent = None if self._parent_snapshot_id is None else metadata.snapshot_by_id(self._parent_snapshot_id)
        return update_snapshot_summaries(
            Summary(operation=self._operation, **collector.build(), **(snapshot_properties or {})),
            previous_summary=parent.summary if parent else None,
        )


class _MergeAppend(_UnderOwnSpecs, _MergeAppendFiles):
    pass


class _Overwrite(_UnderOwnSpecs, _OverwriteFiles):
    def _deleted_entries(self) -> list[ManifestEntry]:
        """The entries of files that go, without bounds: these have parts of keys and values that may be erased."""
        return [_without_bounds(each) for each in super()._deleted_entries()]


def _without_bounds(entry: ManifestEntry) -> ManifestEntry:
    old = entry.data_file
    file = DataFile.from_args(
        content=old.content,
        file_path=old.file_path,
        file_format=old.file_format,
        partition=old.partition,
        record_count=old.record_count,
        file_size_in_bytes=old.file_size_in_bytes,
        sort_order_id=old.sort_order_id,
    )
    file.spec_id = old.spec_id
    return ManifestEntry.from_args(
        status=entry.status,
        snapshot_id=entry.snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=file,
    )


def merge_append(transaction: Transaction, summary: dict[str, str]) -> _MergeAppend:
    """A producer of a snapshot that adds files.

    From `commit.manifest.min-count-to-merge` manifests on they are merged.
    """
    return _MergeAppend(Operation.APPEND, transaction, transaction._table.io, snapshot_properties=summary)  # noqa: SLF001


def overwrite(transaction: Transaction, summary: dict[str, str]) -> _Overwrite:
    """A producer of a snapshot that replaces files by others."""
    return _Overwrite(Operation.OVERWRITE, transaction, transaction._table.io, snapshot_properties=summary)  # noqa: SLF001
