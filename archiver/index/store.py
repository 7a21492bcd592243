"""The objects of runs, in a folder of each table outside of all tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, Self
from uuid import UUID

import numpy as np
import pyarrow as pa

from archiver.config import Config
from archiver.errors import BadSegment, ConfigError, ObjectMissing, StorageError
from archiver.storage.formats import write_leaves
from archiver.storage.objects import ListedObject, ObjectStore
from archiver.storage.postings import OFFSET, PARTITION
from archiver.storage.spool import TaskSpool
from archiver.storage.spool_file import spool_error
from archiver.storage.store_errors import storage_error
from catalog.iceberg.deletion_gate import OwnFolder
from catalog.model import new_id
from catalog.term_runs import TermRun

EXTENSION: Final = ".parquet"
_FAR: Final = np.iinfo(np.int64).max


class RunColumn(Protocol):
    """What a run says of its column: an indexed column, or another run of it."""

    @property
    def identity(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def mapping(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStore:
    """`folder` is empty without a configured place.

    `build` is the claim under which runs are written. `vouch` is called before each upload, and raises for a build
    without a claim.
    """

    objects: ObjectStore
    folder: str
    spool: Path
    build: str = ""
    vouch: Callable[[], None] = lambda: None

    @classmethod
    def of(cls, config: Config, name: str, uuid: UUID, *, table_location: str) -> Self | None:
        """Return None without `location`. Raises ConfigError for a location in the table."""
        root = config.index.location
        if root is None:
            return None
        folder = f"{root}/{name}/{uuid}"
        if f"{folder}/".startswith(f"{table_location}/"):
            raise ConfigError(
                "the index must lie outside of all tables: other engines take its objects for orphans there",
                key="index.location",
                location=root,
                table=name,
            )
        return cls(objects=ObjectStore.of(config.catalog), folder=folder, spool=config.archive.spool)

    @classmethod
    def for_deletion(cls, config: Config) -> Self:
        return cls(objects=ObjectStore.of(config.catalog), folder="", spool=config.archive.spool)

    def write(
        self,
        column: RunColumn,
        parts: Iterable[pa.Table],
        *,
        begun_ms: int,
        spans: Iterable[tuple[int, int, int]],
        level: int = 0,
    ) -> TermRun:
        """`spans` are cut to the first offsets that have postings. Raises StorageError, and as `vouch`."""
        run_id, lows = new_id(), dict[int, int]()
        path = f"{self.folder}/{column.identity}/{run_id}-{self.build}{EXTENSION}"
        with TaskSpool(self.spool) as spool:
            file = spool.create(f"{run_id}{EXTENSION}")
            try:
                written = write_leaves(file, _noting_lows(parts, lows))
            except OSError as error:
                raise spool_error(error, file.path) from error
            self.vouch()
            try:
                self.objects.upload(file, path, expected=written.size_bytes)
            except StorageError:
                self.delete_all([path])
                raise
        return TermRun(
            id=run_id,
            column=column.identity,
            name=column.name,
            kind=column.kind,
            mapping=column.mapping,
            level=level,
            path=path,
            size_bytes=written.size_bytes,
            checksum=written.checksum,
            entries=written.rows,
            begun_ms=begun_ms,
            spans=tuple(
                (partition, max(start, lows[partition]), end)
                for partition, start, end in sorted(spans)
                if partition in lows
            ),
            leaves=written.leaves,
            footer=written.footer,
        )

    def delete(self, path: str) -> None:
        """Delete an object, if it exists. Raises StorageError."""
        folder = path.rpartition("/")[0]
        self.objects.delete(path, OwnFolder(folder))

    def delete_all(self, paths: Iterable[str]) -> list[StorageError]:
        failures: list[StorageError] = []
        for path in paths:
            try:
                self.delete(path)
            except StorageError as error:
                failures.append(error)
        return failures

    def listed(self, folder: str) -> tuple[ListedObject, ...]:
        """Raise StorageError."""
        try:
            return self.objects.list(folder)
        except ObjectMissing:
            return ()


def build_of(name: str) -> str:
    """Return the claim of the build that wrote an object of this name; empty if the name has none."""
    return name.removesuffix(EXTENSION).partition("-")[2]


def _noting_lows(parts: Iterable[pa.Table], lows: dict[int, int]) -> Iterator[pa.Table]:
    """Pass tables on, and keep the lowest offset of each partition. A bitmap's is its first granule's."""
    for part in parts:
        partitions, offsets = part[PARTITION].to_numpy(), part[OFFSET].to_numpy()
        distinct = np.unique(partitions)
        lowest = np.full(len(distinct), _FAR)
        np.minimum.at(lowest, np.searchsorted(distinct, partitions), offsets)
        for partition, low in zip(distinct.tolist(), lowest.tolist(), strict=True):
            lows[partition] = min(low, lows.get(partition, low))
        yield part


def leaf_bytes(objects: ObjectStore, path: str, start: int, size: int) -> bytes:
    """Raise StorageError."""
    stream = objects.open(path)
    try:
        if isinstance(stream, pa.NativeFile) and stream.size() < start + size:
            raise BadSegment("a run of the index is cut short", file=path)
        if hasattr(stream, "read_at"):
            return bytes(stream.read_at(size, start))
        stream.seek(start)
        return bytes(stream.read(size))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise storage_error(error, verb="read", path=path) from error
    finally:
        stream.close()
