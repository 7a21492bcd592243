"""Manifests read an entry at a time: one entry has bounds of every column, and a table may have a million of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
)

from archiver.errors import StorageError
from archiver.storage.failures import classified

_UNREADABLE = (OSError, ValueError, EOFError, zlib.error)


def manifests_of(io: FileIO, path: str) -> list[ManifestFile]:
    """Read a snapshot's list of manifests; raises the leaves of StorageError."""
    try:
        return list(read_manifest_list(io.new_input(path)))
    except _UNREADABLE as error:
        raise classified(error, verb="read", path=path) from error


def live_entries(io: FileIO, manifest: ManifestFile) -> Iterator[ManifestEntry]:
    """Give the entries of a manifest that aren't deleted, with the sequence numbers and spec they inherit from it.

    Raises the leaves of StorageError, also where the manifest ends before the entries that its list counts.
    """
    found = 0
    try:
        with AvroFile[ManifestEntry](
            io.new_input(manifest.manifest_path),
            MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION],
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
        ) as reader:
            for entry in reader:
                if entry.status == ManifestEntryStatus.DELETED:
                    continue
                found += 1
                yield _inherited(entry, manifest)
    except _UNREADABLE as error:
        raise classified(error, verb="read", path=manifest.manifest_path) from error
    counted = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    if found < counted:
        raise StorageError(
            "a manifest has fewer entries than its list counts, so files would be missed in silence: it was cut short; "
            "restore it from a backup, or roll the table back to a snapshot without it",
            file=manifest.manifest_path,
            entries=found,
            counted=counted,
        )


def _inherited(entry: ManifestEntry, manifest: ManifestFile) -> ManifestEntry:
    is_new = manifest.sequence_number == 0 or entry.status == ManifestEntryStatus.ADDED
    if entry.sequence_number is None and is_new:
        entry.sequence_number = manifest.sequence_number
    entry.data_file.spec_id = manifest.partition_spec_id
    return entry
