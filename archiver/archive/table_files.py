"""The data files of a table's current snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.table import Table

from archiver.archive import file_columns as columns
from archiver.archive.delete_index import DeleteIndex, without_metrics
from archiver.archive.manifests import live_entries, manifests_of
from archiver.archive.plan_cache import PlanCache
from archiver.errors import StorageError
from catalog.partitioning import UNPLACED, PartitionTuple

READERS = 8


@dataclass(frozen=True, slots=True)
class ValueBounds:
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """A data file and its delete files.

    `latest` is the highest possible timestamp (ms), -1 without one; `latest_ingest` the highest ingest timestamp (µs);
    None if the manifest lacks it.
    """

    path: str
    format: str
    rows: int
    size_bytes: int
    spec_id: int
    partition_values: tuple[object, ...]
    partitions: ValueBounds | None
    offsets: ValueBounds | None
    latest: int | None
    latest_ingest: int | None = None
    has_nan_bounds: bool = False
    position_deletes: tuple[DataFile, ...] = ()
    equality_deletes: tuple[DataFile, ...] = ()

    @property
    def time_partition(self) -> PartitionTuple:
        """`UNPLACED` unless the table is partitioned by time alone."""
        value = self.partition_values[0] if len(self.partition_values) == 1 else None
        return PartitionTuple.of_time(value) if isinstance(value, int) else UNPLACED

    @property
    def has_deletes(self) -> bool:
        return bool(self.position_deletes or self.equality_deletes)


class TableFiles:
    """A row of `columns` for each file. Thread-safe."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, deletes: DeleteIndex) -> None:
        self._batches = tuple(batches)
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])
        self._deletes = deletes
        self.columns = pa.Table.from_batches(self._batches, schema)

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def __iter__(self) -> Iterator[TableFile]:
        for batch in self._batches:
            for start in range(0, batch.num_rows, _AT_ONCE):
                yield from map(self._described, batch.slice(start, _AT_ONCE).to_pylist())

    @cached_property
    def partitions(self) -> frozenset[int]:
        """Return only the lowest and highest partition of each file with bounds."""
        bounds = (self.columns[columns.LOW_PARTITION], self.columns[columns.HIGH_PARTITION])
        return frozenset(
            partition for column in bounds for partition in pc.unique(column).to_pylist() if partition is not None
        )

    def pick(self, indices: npt.NDArray[np.int64]) -> Iterator[TableFile]:
        batches = np.searchsorted(self._starts, indices, side="right") - 1
        for number, row in zip(batches.tolist(), (indices - self._starts[batches]).tolist(), strict=True):
            yield from map(self._described, self._batches[number].slice(row, 1).to_pylist())

    def named(self, paths: Collection[str]) -> dict[str, TableFile]:
        values = pa.array(sorted(paths), pa.large_string())
        mask = pc.is_in(self.columns[columns.PATH], value_set=values)
        return {file.path: file for file in self.pick(np.flatnonzero(mask.to_numpy()))}

    def only_adds_to(self, earlier: TableFiles) -> bool:
        kept = pc.is_in(earlier.columns[columns.PATH], value_set=pc.unique(self.columns[columns.PATH]))
        return self._deletes is earlier._deletes and bool(kept.to_numpy().all())

    def added_since(self, earlier: TableFiles) -> Iterator[TableFile]:
        shared = pc.is_in(self.columns[columns.PATH], value_set=pc.unique(earlier.columns[columns.PATH]))
        return self.pick(np.flatnonzero(~shared.to_numpy()))

    def _described(self, row: Mapping[str, Any]) -> TableFile:
        path, sequence, spec_id, partition = row[columns.PATH], row["sequence_number"], row["spec_id"], row["place"]
        return TableFile(
            path=path,
            format=row["format"],
            rows=row[columns.ROWS],
            size_bytes=row["size_bytes"],
            spec_id=spec_id,
            partition_values=tuple(json.loads(partition)),
            partitions=_bounds(row[columns.LOW_PARTITION], row[columns.HIGH_PARTITION]),
            offsets=_bounds(row[columns.LOW_OFFSET], row[columns.HIGH_OFFSET]),
            latest=row[columns.LATEST],
            latest_ingest=row[columns.LATEST_INGEST],
            has_nan_bounds=row[columns.NAN_BOUNDS],
            position_deletes=self._deletes.positions(path, sequence, spec_id, partition),
            equality_deletes=self._deletes.equalities(sequence, spec_id, partition),
        )


_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    files: tuple[pa.RecordBatch, ...]
    deletes: tuple[ManifestEntry, ...]


@dataclass(slots=True)
class ManifestReader:
    """Reads each manifest once. Not thread-safe.

    `counted` and `bounded` are field ids of columns with null counts and bounds. With bounds `cache` isn't used: they
    are values of records, and an erasure can't reach caches of other machines.
    """

    counted: frozenset[int] = frozenset()
    cache: PlanCache | None = None
    bounded: frozenset[int] = frozenset()
    _read: dict[str, _Manifest] = field(default_factory=dict)
    _deletes: tuple[frozenset[str], DeleteIndex] = (frozenset(), DeleteIndex((), {}))
    _last: tuple[str, TableFiles] | None = None

    def files(self, table: Table, *, unreadable: Callable[[str, StorageError], None] | None = None) -> TableFiles:
        """Unreadable manifests go to `unreadable`, if given."""
        snapshot = table.current_snapshot()
        if snapshot is None:
            return TableFiles((), columns.columns_of(self.counted, self.bounded), DeleteIndex((), {}))
        if self._last is None or self._last[0] != snapshot.manifest_list:
            self._last = snapshot.manifest_list, self._planned(table, manifests_of(table, snapshot), unreadable)
        return self._last[1]

    def _planned(
        self,
        table: Table,
        manifests: Iterable[ManifestFile],
        unreadable: Callable[[str, StorageError], None] | None,
    ) -> TableFiles:
        current = {manifest.manifest_path: manifest for manifest in manifests}
        for path in self._read.keys() - current.keys():
            del self._read[path]
        fresh = [manifest for path, manifest in current.items() if path not in self._read]
        with ThreadPoolExecutor(min(READERS, len(fresh)) or 1, thread_name_prefix="manifests") as pool:
            load = (
                partial(self._manifest, table.io) if unreadable is None else partial(self._told, table.io, unreadable)
            )
            for manifest, read in zip(fresh, pool.map(load, fresh), strict=True):
                self._read[manifest.manifest_path] = read
        if fresh and self.cache is not None:
            self.cache.forget_unused()
        return TableFiles(
            (batch for path in current for batch in self._read[path].files),
            columns.columns_of(self.counted, self.bounded),
            self._index(table),
        )

    def _index(self, table: Table) -> DeleteIndex:
        deletes = {path: read.deletes for path, read in self._read.items() if read.deletes}
        if deletes.keys() != self._deletes[0]:
            entries = (entry for delete in deletes.values() for entry in delete)
            self._deletes = frozenset(deletes), DeleteIndex(entries, table.specs())
        return self._deletes[1]

    def _told(self, io: FileIO, unreadable: Callable[[str, StorageError], None], manifest: ManifestFile) -> _Manifest:
        try:
            return self._manifest(io, manifest)
        except StorageError as error:
            if error.retryable:
                raise
            unreadable(manifest.manifest_path, error)
            return _Manifest(files=(), deletes=())

    def _manifest(self, io: FileIO, manifest: ManifestFile) -> _Manifest:
        if self.cache is None or self.bounded or manifest.content != ManifestContent.DATA:
            return _read_manifest(io, self.counted, self.bounded, manifest)
        cached = self.cache.find(manifest, self.counted)
        if cached is not None:
            return _Manifest(files=cached, deletes=())
        read = _read_manifest(io, self.counted, self.bounded, manifest)
        if not read.deletes:
            self.cache.keep(manifest, self.counted, read.files)
        return read


def _read_manifest(io: FileIO, counted: frozenset[int], bounded: frozenset[int], manifest: ManifestFile) -> _Manifest:
    deletes: list[ManifestEntry] = []

    def data_files() -> Iterator[ManifestEntry]:
        for entry in live_entries(io, manifest):
            if entry.data_file.content == DataFileContent.DATA:
                yield entry
            else:
                deletes.append(without_metrics(entry))

    files = tuple(columns.in_columns(data_files(), counted, bounded))
    return _Manifest(files=files, deletes=tuple(deletes))


def _bounds(low: int | None, high: int | None) -> ValueBounds | None:
    return None if low is None or high is None else ValueBounds(low, high)
