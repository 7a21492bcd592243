"""Check that the objects of staged files exist.

A missing object counts only if the store has the table's files: a wrong endpoint also answers "not found".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final
from urllib.parse import urlsplit

from archiver.archive.manifests import live_entries, manifests_of
from archiver.errors import ObjectMissing, StorageError, StorageUnavailable
from archiver.storage.objects import ObjectStore
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import DataFileInfo, TopicRow, TranslatedRange
from catalog.registry import MissingObjects

_LOG = logging.getLogger(__name__)

_LOOKS_AT_ONCE: Final = 16
_WITNESSES: Final = 3
"""How many of the table's data files are looked up if its metadata is in another store."""

LoadTable = Callable[[], ArchiveTable]


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    topic: TopicRow
    objects: ObjectStore
    missing: MissingObjects
    load: LoadTable

    def check(self, waiting: Sequence[TranslatedRange]) -> tuple[TranslatedRange, ...]:
        """Return the ranges that can be committed.

        A missing object rejects its range and later ones. Raises StorageUnavailable if the table's files are missing
        too.
        """
        faults = self._faults(waiting)
        if not faults:
            return tuple(waiting)
        self._believe(faults)
        good: list[TranslatedRange] = []
        for _, partition in groupby(waiting, key=lambda range_: range_.partition):
            ranges = list(partition)
            bad = next((position for position, item in enumerate(ranges) if item.id in faults), len(ranges))
            good += ranges[:bad]
            if bad < len(ranges):
                self._reject(ranges[bad:], faults[ranges[bad].id])
        return tuple(good)

    def take_up(self) -> None:
        """Accept missing ranges again if their objects are back and their offsets are free."""
        if not self.missing.load(self.topic):
            return
        table = self.load()
        missing = self.missing.load(self.topic, table_offsets=table.offsets)
        faults = self._faults(missing)
        back = {item.id for item in missing if item.id not in faults}
        if not back:
            return
        for accepted in self.missing.take_up(self.topic, back, table_offsets=table.offsets):
            _LOG.warning(
                "staged files that were missing are back and wait for their commit: %s/%s %s, %s",
                accepted.topic,
                accepted.partition,
                accepted.span,
                ", ".join(file.path for file in accepted.files) or "no file",
            )

    def _faults(self, ranges: Sequence[TranslatedRange]) -> dict[str, StorageError]:
        pairs = [(item.id, file) for item in ranges for file in item.files]
        if len(pairs) <= 1:
            return {range_id: fault for range_id, file in pairs if (fault := self._fault(file)) is not None}
        with ThreadPoolExecutor(min(_LOOKS_AT_ONCE, len(pairs)), thread_name_prefix="look") as pool:
            results = zip(pairs, pool.map(self._fault, [file for _, file in pairs]), strict=True)
            return {range_id: fault for (range_id, _), fault in results if fault is not None}

    def _fault(self, file: DataFileInfo) -> StorageError | None:
        try:
            size = self.objects.size(file.path)
        except ObjectMissing as missing:
            return missing
        if size == file.size_bytes:
            return None
        return StorageError(
            "the object's size is not the staged file's: something else wrote or cut it",
            file=file.path,
            size=size,
            staged_size=file.size_bytes,
        )

    def _believe(self, faults: dict[str, StorageError]) -> None:
        """Raise StorageUnavailable unless each missing file's store has files of the table."""
        table = self.load()
        unproven: dict[str, list[str]] = {}
        for fault in faults.values():
            unproven.setdefault(_store(fault.context["file"], table), []).append(fault.context["file"])
        for store, paths in unproven.items():
            witnesses = list(_witnesses(table, store))
            if not any(self.objects.exists(witness) for witness in witnesses):
                raise StorageUnavailable(
                    "staged files aren't in the object store, nor are the table's own files: it is away, empty, or "
                    "another one than the table's. Nothing was given up, the files stay staged. Check endpoint, bucket "
                    "and mount, then run again",
                    table=self.topic.table,
                    file=paths[0],
                    files=len(paths),
                    also_missing=witnesses[0] if witnesses else "no file of the table is known there",
                )

    def _reject(self, ranges: Sequence[TranslatedRange], fault: StorageError) -> None:
        first = ranges[0]
        span = f"[{first.start_offset}, {ranges[-1].end_offset})"
        _LOG.warning(
            "a staged file is gone from the store; %s/%s %s is fetched from Kafka again, unless it comes back: %s",
            first.topic,
            first.partition,
            span,
            fault,
        )
        self.missing.reject(self.topic, [item.id for item in ranges], reason=str(fault))


def _store(path: str, table: ArchiveTable) -> str:
    """Return a bucket or, locally, the folder of the table or its data."""
    bucket = urlsplit(path).netloc
    folders = (table.location, table.data_location)
    return bucket or next((folder for folder in folders if path.startswith(f"{folder}/")), path)


def _witnesses(table: ArchiveTable, store: str) -> Iterator[str]:
    snapshot = table.iceberg.current_snapshot()
    metadata = (table.iceberg.metadata_location, snapshot.manifest_list if snapshot else "")
    files = [path for path in metadata if path and _store(path, table) == store]
    yield from files
    if files or snapshot is None:
        return
    yield from islice((path for path in _data_paths(table) if _store(path, table) == store), _WITNESSES)


def _data_paths(table: ArchiveTable) -> Iterator[str]:
    snapshot = table.iceberg.current_snapshot()
    for manifest in manifests_of(table.iceberg, snapshot) if snapshot else ():
        yield from (entry.data_file.file_path for entry in live_entries(table.io, manifest))
