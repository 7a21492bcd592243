"""Reads manifest lists and manifests, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO, InputFile
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import TableVersion

from archiver.archive.deletion_vectors import ENTRY_VERSION
from archiver.errors import StorageError
from archiver.storage.store_errors import storage_error
from catalog.errors import MetadataDamaged
from catalog.iceberg import manifest_lists
from catalog.iceberg.avro_blocks import records_of

_UNREADABLE = (OSError, *manifest_lists.UNREADABLE)


def listed_by(path: str, io: FileIO) -> list[ManifestFile]:
    """Read the manifest list of a commit that may still land. Raises StorageError, also if truncated."""
    with _in_our_words(path):
        return manifest_lists.manifest_list(io, path)


def manifests_of(table: Table, snapshot: Snapshot) -> list[ManifestFile]:
    """Raise StorageError, also if the list is truncated."""
    with _in_our_words(snapshot.manifest_list):
        return manifest_lists.manifests_of(table.io, table.metadata, snapshot)


def live_entries(io: FileIO, manifest: ManifestFile) -> Iterator[ManifestEntry]:
    """Yield live entries with inherited sequence number and spec.

    Delete files have the fields of `ENTRY_VERSION`. Raises StorageError, also for a truncated manifest.
    """
    path = manifest.manifest_path
    live = read = 0
    with _in_our_words(path):
        content = manifest_lists.manifest_content(io, manifest)
        records = records_of(content, path)
        with AvroFile[ManifestEntry](
            cast("InputFile", manifest_lists.BytesFile(content)),
            MANIFEST_ENTRY_SCHEMAS[_version(manifest)],
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
        ) as reader:
            for entry in reader:
                read += 1
                if entry.status == ManifestEntryStatus.DELETED:
                    continue
                live += 1
                yield _inherited(entry, manifest)
        manifest_lists.check_entries(manifest, live)
        if read != records:
            raise manifest_lists.manifest_cut_short(manifest, entries=read, counted=records)


def _version(manifest: ManifestFile) -> TableVersion:
    return DEFAULT_READ_VERSION if manifest.content == ManifestContent.DATA else ENTRY_VERSION


@contextmanager
def _in_our_words(path: str) -> Iterator[None]:
    try:
        yield
    except MetadataDamaged as error:
        raise StorageError(error.message, **error.context) from error
    except _UNREADABLE as error:
        raise storage_error(error, verb="read", path=path) from error


def _inherited(entry: ManifestEntry, manifest: ManifestFile) -> ManifestEntry:
    is_new = manifest.sequence_number == 0 or entry.status == ManifestEntryStatus.ADDED
    if entry.sequence_number is None and is_new:
        entry.sequence_number = manifest.sequence_number
    entry.data_file.spec_id = manifest.partition_spec_id
    return entry
