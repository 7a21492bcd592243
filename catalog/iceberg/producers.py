"""pyiceberg's snapshot producers, corrected.

Added files get a manifest of their partition spec. Truncated manifests and lists end the attempt. Summaries
count manifests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile, ManifestWriter
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import TableProperties, Transaction
from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update.snapshot import _MergeAppendFiles, _OverwriteFiles, _SnapshotProducer

from catalog.errors import MetadataDamaged
from catalog.iceberg.avro_files import ManifestFileWriter
from catalog.iceberg.manifest_lists import CREATED, KEPT, entries_of, manifests_of
from catalog.iceberg.whole_files import WholeFiles
from catalog.iceberg.written_lists import WrittenLists

_KEPT_FORMAT: Final = 2
"""The format of tables for whose manifests schemas are kept."""
_SUMMARY_LIMIT: Final = TableProperties.WRITE_PARTITION_SUMMARY_LIMIT

if TYPE_CHECKING:
    _Producer = _SnapshotProducer[Any]
else:
    _Producer = object


class _Sound(_Producer):
    _before: Sequence[ManifestFile] = ()
    """The manifests of the snapshot that this one follows."""
    _gone: int = 0
    """How many entries of theirs are taken out."""
    _listed: tuple[int, int] = (0, 0)
    """How many manifests the new list has that are new, and older ones."""

    def _manifests(self) -> list[ManifestFile]:
        self._before, added = self._of_parent(), self._added_data_files
        by_spec: dict[int, list[DataFile]] = defaultdict(list)
        for file in added:
            by_spec[file.spec_id].append(file)
        self._added_data_files = by_spec.pop(self._transaction.table_metadata.default_spec_id, [])
        try:
            fresh = [self._added_manifest(spec_id, files) for spec_id, files in sorted(by_spec.items())]
            manifests = [*fresh, *self._with_older()]
        finally:
            self._added_data_files = added
        self._check_complete(manifests)
        created = sum(manifest.added_snapshot_id == self._snapshot_id for manifest in manifests)
        self._listed = created, len(manifests) - created
        return manifests

    def _with_older(self) -> list[ManifestFile]:
        return super()._manifests()

    def _of_parent(self) -> list[ManifestFile]:
        metadata, parent_id = self._transaction.table_metadata, self._parent_snapshot_id
        parent = None if parent_id is None else metadata.snapshot_by_id(parent_id)
        return [] if parent is None else manifests_of(self._io, metadata, parent)

    def _check_complete(self, manifests: Sequence[ManifestFile]) -> None:
        """Raise MetadataDamaged if files are missing: pyiceberg reads truncated manifests without an error."""
        before, after = _live(self._before), _live(manifests)
        expected = before + len(self._added_data_files) - self._gone
        if after < expected:
            for manifest in self._before:
                entries_of(self._io, manifest)
            raise MetadataDamaged(
                "the new snapshot would lack files of the one before: nothing was committed; have `archiver verify` "
                "look at the table",
                files=after,
                expected=expected,
            )

    def fetch_manifest_entry(self, manifest: ManifestFile, discard_deleted: bool = True) -> list[ManifestEntry]:
        return entries_of(self._io, manifest, only_live=discard_deleted)

    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        if self._transaction.table_metadata.format_version != _KEPT_FORMAT:
            return super().new_manifest_writer(spec)
        return ManifestFileWriter(spec, self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression)

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
        counts = dict(zip((CREATED, KEPT), map(str, self._listed), strict=True))
        return update_snapshot_summaries(
            Summary(operation=self._operation, **collector.build(), **counts, **(snapshot_properties or {})),
            previous_summary=parent.summary if parent else None,
        )


class _MergeAppend(_Sound, _MergeAppendFiles):
    def _with_older(self) -> list[ManifestFile]:
        """Without pyiceberg's three threads, of which two are idle."""
        spec_id, files = self._transaction.table_metadata.default_spec_id, self._added_data_files
        added = [self._added_manifest(spec_id, files)] if files else []
        return self._process_manifests(added + self._existing_manifests())

    def _existing_manifests(self) -> list[ManifestFile]:
        return [manifest for manifest in self._before if manifest.has_added_files() or manifest.has_existing_files()]


class _Overwrite(_Sound, _OverwriteFiles):
    def _deleted_entries(self) -> list[ManifestEntry]:
        """Without bounds, which may have erased keys and values."""
        entries = [_without_bounds(entry) for entry in super()._deleted_entries()]
        self._gone = len(entries)
        return entries


def _live(manifests: Iterable[ManifestFile]) -> int:
    return sum((manifest.added_files_count or 0) + (manifest.existing_files_count or 0) for manifest in manifests)


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


def merge_append(transaction: Transaction, summary: dict[str, str], lists: WrittenLists) -> _MergeAppend:
    """Merges manifests from `commit.manifest.min-count-to-merge` on."""
    return _MergeAppend(Operation.APPEND, transaction, _files(transaction, lists), snapshot_properties=summary)


def overwrite(transaction: Transaction, summary: dict[str, str], lists: WrittenLists) -> _Overwrite:
    return _Overwrite(Operation.OVERWRITE, transaction, _files(transaction, lists), snapshot_properties=summary)


def _files(transaction: Transaction, lists: WrittenLists) -> WholeFiles:
    return WholeFiles(transaction._table.io, lists)  # noqa: SLF001
