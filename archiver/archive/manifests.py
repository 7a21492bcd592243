"""Reads manifest lists and manifests, entry by entry.

One entry has bounds of every column, and a table may have a million entries.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import cast

from pyiceberg.avro.file import AvroFile
from pyiceberg.exceptions import ResolveError
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
    read_manifest_list,
)
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import TableVersion

from archiver.archive.deletion_vectors import ENTRY_VERSION
from archiver.errors import StorageError
from archiver.storage.store_errors import storage_error

_UNREADABLE = (OSError, ValueError, EOFError, zlib.error, LookupError, TypeError, SystemError, ResolveError)
"""The errors that reading raises; the last four come from pyiceberg's decoder when bytes are damaged."""


_SYNC = 16


def manifests_of(io: FileIO, path: str) -> list[ManifestFile]:
    """Read a snapshot's manifest list. Raises the leaves of StorageError, also if the list was cut short."""
    try:
        with io.new_input(path).open() as stream:
            content = stream.read()
        found = list(read_manifest_list(cast("InputFile", _BytesFile(content))))
    except _UNREADABLE as error:
        raise storage_error(error, verb="read", path=path) from error
    # The header and each block of an Avro file end with the same 16 bytes. If the last 16 bytes are nowhere else, the
    # list was cut short within a block; the decoder wouldn't notice.
    if found and content.find(content[-_SYNC:]) == len(content) - _SYNC:
        raise _list_cut_short(path)
    return found


def check_listed(manifests: Sequence[ManifestFile], snapshot: Snapshot) -> None:
    """Raise StorageError if a list names no manifests though the snapshot says that the table has files."""
    summary = snapshot.summary.additional_properties if snapshot.summary else {}
    if not manifests and summary.get("total-data-files", "0") not in {"", "0"}:
        raise _list_cut_short(snapshot.manifest_list, data_files=summary["total-data-files"])


def live_entries(io: FileIO, manifest: ManifestFile) -> Iterator[ManifestEntry]:
    """Give the live entries of a manifest, with the sequence number and spec that they inherit from it.

    Entries of delete files have the fields of `ENTRY_VERSION`, which say where deletion vectors lie.
    Raises the leaves of StorageError, also if the manifest is shorter than its list says.
    """
    found = 0
    try:
        with AvroFile[ManifestEntry](
            _whole(io, manifest),
            MANIFEST_ENTRY_SCHEMAS[_version(manifest)],
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
        ) as reader:
            for entry in reader:
                if entry.status == ManifestEntryStatus.DELETED:
                    continue
                found += 1
                yield _inherited(entry, manifest)
    except _UNREADABLE as error:
        raise storage_error(error, verb="read", path=manifest.manifest_path) from error
    counted = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    if found < counted:
        raise _cut_short(manifest, entries=found, counted=counted)


def _version(manifest: ManifestFile) -> TableVersion:
    return DEFAULT_READ_VERSION if manifest.content == ManifestContent.DATA else ENTRY_VERSION


class _BytesFile:
    """Bytes as an input file, with what AvroFile needs of one."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def open(self, seekable: bool = True) -> BytesIO:  # noqa: ARG002 - InputFile's
        return BytesIO(self._content)


def _whole(io: FileIO, manifest: ManifestFile) -> InputFile:
    """Read a manifest into memory and check its length: the decoder doesn't notice if the input was cut short."""
    with io.new_input(manifest.manifest_path).open() as stream:
        content = stream.read()
    if len(content) < manifest.manifest_length:
        raise _cut_short(manifest, bytes=len(content), listed=manifest.manifest_length)
    return cast("InputFile", _BytesFile(content))


def _list_cut_short(path: str, **found: str) -> StorageError:
    return StorageError(
        "a manifest list was cut short, so files would be missed in silence; restore it from a backup or the store's "
        "versions; setting the table back to a snapshot before it takes records away",
        file=path,
        **found,
    )


def _cut_short(manifest: ManifestFile, **found: int) -> StorageError:
    return StorageError(
        "a manifest holds less than its list says, so files would be missed in silence: it was cut short; restore it "
        "from a backup or the store's versions; setting the table back to a snapshot without it takes records away",
        file=manifest.manifest_path,
        **found,
    )


def _inherited(entry: ManifestEntry, manifest: ManifestFile) -> ManifestEntry:
    is_new = manifest.sequence_number == 0 or entry.status == ManifestEntryStatus.ADDED
    if entry.sequence_number is None and is_new:
        entry.sequence_number = manifest.sequence_number
    entry.data_file.spec_id = manifest.partition_spec_id
    return entry
