"""The data files of a table's current snapshot, with what its manifests say about each.

Read anew for every plan, so that compaction and rewrites by anybody are followed. Manifests never change, so what was
read from one is kept while the table still has it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.delete_file_index import DeleteFileIndex
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import Record

from archiver.storage.failures import classified
from archiver.storage.rows import MICROS_PER_MILLI, NO_TIMESTAMP
from schema_mapping.fixed_columns import (
    APPEND_TIMESTAMP_ID,
    EVENT_TIMESTAMP_ID,
    OFFSET_ID,
    PARTITION_ID,
    RAW_TIMESTAMP_ID,
)

READERS = 8
_TIMES = ((EVENT_TIMESTAMP_ID, MICROS_PER_MILLI), (APPEND_TIMESTAMP_ID, MICROS_PER_MILLI), (RAW_TIMESTAMP_ID, 1))


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and greatest value, both included."""

    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """A data file and the delete files that apply to it.

    `partitions` and `offsets` are None where the manifest doesn't say; `latest` is the greatest timestamp (ms) that a
    record in it can have, -1 where none has one, None where the manifest doesn't say. `entry` is all that it says.
    """

    path: str
    format: str
    rows: int
    partitions: Bounds | None
    offsets: Bounds | None
    latest: int | None
    position_deletes: tuple[DataFile, ...] = ()
    equality_deletes: tuple[DataFile, ...] = ()
    entry: DataFile = field(repr=False, compare=False)

    @property
    def has_deletes(self) -> bool:
        """Whether rows of it may have been deleted."""
        return bool(self.position_deletes or self.equality_deletes)


@dataclass(slots=True)
class ManifestReader:
    """Reads a table's manifests, each once. Not for use by two threads at a time."""

    _entries: dict[str, list[ManifestEntry]] = field(default_factory=dict)

    def files(self, table: Table) -> tuple[TableFile, ...]:
        """List the data files of the current snapshot; none where there is no snapshot."""
        snapshot = table.current_snapshot()
        manifests = _manifests(table.io, snapshot) if snapshot else []
        self._read(table.io, manifests)
        entries = [entry for manifest in manifests for entry in self._entries[manifest.manifest_path]]
        deletes = _Deletes(table, entries)
        return tuple(deletes.described(entry) for entry in entries if entry.data_file.content == DataFileContent.DATA)

    def _read(self, io: FileIO, manifests: Iterable[ManifestFile]) -> None:
        wanted = {manifest.manifest_path: manifest for manifest in manifests}
        for path in self._entries.keys() - wanted.keys():
            del self._entries[path]
        fresh = [manifest for path, manifest in wanted.items() if path not in self._entries]
        with ThreadPoolExecutor(min(READERS, len(fresh)) or 1, thread_name_prefix="manifests") as pool:
            for manifest, entries in zip(fresh, pool.map(partial(_read_manifest, io), fresh), strict=True):
                self._entries[manifest.manifest_path] = entries


def _manifests(io: FileIO, snapshot: Snapshot) -> list[ManifestFile]:
    try:
        return snapshot.manifests(io)
    except OSError as error:
        raise classified(error, verb="read", path=snapshot.manifest_list) from error


def _read_manifest(io: FileIO, manifest: ManifestFile) -> list[ManifestEntry]:
    try:
        return manifest.fetch_manifest_entry(io)
    except OSError as error:
        raise classified(error, verb="read", path=manifest.manifest_path) from error


class _Deletes:
    """Which delete files apply to which data file, by the rules of Iceberg's specification (scan planning)."""

    def __init__(self, table: Table, entries: Iterable[ManifestEntry]) -> None:
        self._positions = DeleteFileIndex()
        self._equalities: list[tuple[int, DataFile]] = []
        self._unpartitioned = {spec_id for spec_id, spec in table.specs().items() if spec.is_unpartitioned()}
        for entry in entries:
            file = entry.data_file
            if file.content == DataFileContent.POSITION_DELETES:
                self._positions.add_delete_file(entry, partition_key=file.partition)
            elif file.content == DataFileContent.EQUALITY_DELETES:
                self._equalities.append((entry.sequence_number or 0, file))

    def described(self, entry: ManifestEntry) -> TableFile:
        file = entry.data_file
        sequence = entry.sequence_number or 0
        positions = self._positions.for_data_file(sequence, file, partition_key=file.partition)
        return TableFile(
            path=file.file_path,
            entry=file,
            format=str(file.file_format.value).lower(),
            rows=file.record_count,
            partitions=_bounds(file, PARTITION_ID),
            offsets=_bounds(file, OFFSET_ID),
            latest=_latest(file),
            position_deletes=tuple(sorted(positions, key=lambda one: one.file_path)),
            equality_deletes=tuple(
                delete for later, delete in self._equalities if later > sequence and self._same_partition(file, delete)
            ),
        )

    def _same_partition(self, file: DataFile, delete: DataFile) -> bool:
        if delete.spec_id in self._unpartitioned:
            return True
        return (file.spec_id, _key(file.partition)) == (delete.spec_id, _key(delete.partition))


def _key(partition: Record) -> tuple[object, ...]:
    return tuple(partition[index] for index in range(len(partition)))


def _bounds(file: DataFile, field_id: int) -> Bounds | None:
    low = _number((file.lower_bounds or {}).get(field_id))
    high = _number((file.upper_bounds or {}).get(field_id))
    return None if low is None or high is None else Bounds(low, high)


def _latest(file: DataFile) -> int | None:
    latest = NO_TIMESTAMP
    for field_id, unit in _TIMES:
        if (file.null_value_counts or {}).get(field_id) == file.record_count:
            continue
        high = _number((file.upper_bounds or {}).get(field_id))
        if high is None:
            return None
        latest = max(latest, high // unit)
    return latest


def _number(bound: bytes | None) -> int | None:
    """Read an int's, long's or timestamp's bound: a promoted column may still have the shorter one."""
    if bound is None:
        return None
    value: int = struct.unpack("<i" if len(bound) == struct.calcsize("<i") else "<q", bound)[0]
    return value
