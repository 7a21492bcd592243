"""The objects with metadata of records, beside the journal: one for each entry, so that it can be erased."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from archiver.errors import ObjectMissing
from archiver.storage.journal_commits import READERS, readable
from archiver.storage.objects import ObjectStore
from catalog.iceberg.deletion_gate import OwnFolder
from catalog.journal_entries import check_format
from catalog.record_metadata import MetadataEntry

AT_ONCE: Final = READERS
"""The objects that threads write, read or delete at once."""
_EXTENSION: Final = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFolder:
    """Methods raise subclasses of StorageError, and RegistryOutdated for an entry of a newer archiver."""

    path: str
    objects: ObjectStore

    def write(self, entries: Sequence[MetadataEntry]) -> None:
        """Write entries. After an error none is still being written."""
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="metadata") as pool:
            list(pool.map(self._write, entries))  # raises the first error

    def ids(self) -> frozenset[str]:
        names = (listed.name for listed in self.objects.list(self.path))
        return frozenset(name.removesuffix(_EXTENSION) for name in names if name.endswith(_EXTENSION))

    def read(self, ids: Collection[str]) -> tuple[MetadataEntry, ...]:
        """Read entries. Deleted ones are left out."""
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="metadata") as pool:
            return tuple(entry for entry in pool.map(self._entry, sorted(ids)) if entry is not None)

    def delete(self, entry_id: str) -> None:
        self.objects.delete(self._path(entry_id), OwnFolder(self.path))

    def _write(self, entry: MetadataEntry) -> None:
        self.objects.write(self._path(entry.id), json.dumps(entry.to_json(), ensure_ascii=False).encode())

    def _entry(self, entry_id: str) -> MetadataEntry | None:
        path = self._path(entry_id)
        try:
            data = self.objects.read(path)
        except ObjectMissing:
            return None
        with readable(path):
            value = json.loads(data)
            check_format(value)
            return MetadataEntry.from_json(value)

    def _path(self, entry_id: str) -> str:
        return f"{self.path}/{entry_id}{_EXTENSION}"
