"""The names that a table refers to, in retained snapshots and commits that may land.

Names contain a ULID or UUID, so `s3`, `s3a` or a move make no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.snapshots import Snapshot

from archiver.archive.manifests import listed_by, live_entries, manifests_of
from archiver.errors import ObjectMissing
from archiver.storage.store_errors import storage_error
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.attempt_names import ManifestName, is_of_archiver, is_ours
from catalog.model import file_name

READERS: Final = 8
_LOADS: Final = 3
_PARENT: Final = "parent-snapshot-id"
_SEQUENCE: Final = "sequence-number"
_NO_PARENT: Final = "null"


class References:
    """A growing set of names. Not thread-safe.

    Lists of another archiver table in the folder count, unless `is_of_one_table`: files of an erasure must go.
    """

    def __init__(self, *, is_of_one_table: bool = False) -> None:
        self._is_of_one_table = is_of_one_table
        self._names: set[str] = set()
        self._followed: set[str] = set()
        self._heads: dict[str, tuple[str, int]] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def look(self, load: Callable[[], ArchiveTable], lists: Sequence[str]) -> ArchiveTable:
        """Add what the table refers to, and would if a manifest list in `lists` still landed. Return the table.

        Raises TableError and StorageError.
        """
        for left in reversed(range(_LOADS)):
            table = load()
            try:
                snapshots = {snapshot.manifest_list: snapshot for snapshot in table.iceberg.metadata.snapshots}
                self._follow(table.io, snapshots, partial(_listed, table, snapshots))
                self._follow_attempts(table, lists)
            except ObjectMissing:  # the table moved on, and an expired manifest list was deleted
                if not left:
                    raise
                continue
            break
        return table

    def _follow_attempts(self, table: ArchiveTable, lists: Iterable[str]) -> None:
        current = _NO_PARENT if table.snapshot_id is None else str(table.snapshot_id)
        for path in lists:
            if path in self._followed or file_name(path) in self._names:
                continue
            if self._is_of_one_table and _is_of_other_table(path, table):
                continue
            with suppress(ObjectMissing):  # its writer deleted it because it can't land
                parent, sequence = self._head(table.io, path)
                if parent == current or sequence > table.last_sequence_number:
                    self._follow(table.io, [path], partial(listed_by, io=table.io))

    def _head(self, io: FileIO, path: str) -> tuple[str, int]:
        if path not in self._heads:
            self._heads[path] = _head_of(io, path)
        return self._heads[path]

    def _follow(self, io: FileIO, lists: Iterable[str], read: Callable[[str], list[ManifestFile]]) -> None:
        fresh = [path for path in dict.fromkeys(lists) if path not in self._followed]
        manifests: dict[str, ManifestFile] = {}
        with ThreadPoolExecutor(READERS, thread_name_prefix="references") as pool:
            for entries in pool.map(read, fresh):
                manifests |= {manifest.manifest_path: manifest for manifest in entries}
            unread = [manifest for path, manifest in manifests.items() if path not in self._followed]
            for names in pool.map(partial(_files, io), unread):
                self._names |= names
        self._names |= {file_name(path) for path in (*fresh, *manifests)}
        self._followed |= {*fresh, *manifests}


def _listed(table: ArchiveTable, snapshots: Mapping[str, Snapshot], path: str) -> list[ManifestFile]:
    return manifests_of(table.iceberg, snapshots[path])


def _files(io: FileIO, manifest: ManifestFile) -> set[str]:
    return {file_name(entry.data_file.file_path) for entry in live_entries(io, manifest)}


def _is_of_other_table(path: str, table: ArchiveTable) -> bool:
    name = ManifestName.of(file_name(path))
    return name is not None and is_of_archiver(name.uuid) and not is_ours(name.uuid, table.uuid)


def _head_of(io: FileIO, path: str) -> tuple[str, int]:
    """Return parent snapshot and sequence number (0 in format version 1)."""
    try:
        with AvroFile[ManifestFile](io.new_input(path)) as reader:
            meta = reader.header.meta
            return str(meta.get(_PARENT, _NO_PARENT)), int(meta.get(_SEQUENCE, 0))
    except (OSError, ValueError, EOFError) as error:
        raise storage_error(error, verb="read", path=path) from error
