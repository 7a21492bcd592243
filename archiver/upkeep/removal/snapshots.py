"""The retained snapshots that refer to removed files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Final

from pyiceberg.manifest import DataFile, DataFileContent, ManifestFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot

from archiver.archive.manifests import live_entries, manifests_of
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import is_ours
from catalog.iceberg.owner_retention import OwnerRetention
from catalog.model import file_name
from schema_mapping.columns.fixed import OFFSET_ID, PARTITION_ID

READERS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingSnapshots:
    """`going` may expire, `young` not yet, `others` on request.

    `owned` are kept by the owner's `settings`. `named` are tags and branches.
    """

    going: tuple[Snapshot, ...] = ()
    owned: tuple[Snapshot, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    young: tuple[Snapshot, ...] = ()
    others: tuple[Snapshot, ...] = ()
    named: Mapping[str, int] = field(default_factory=dict)

    @property
    def stay(self) -> bool:
        return bool(self.owned or self.young or self.others or self.named)


def holding_snapshots(
    table: ArchiveTable, files: Collection[str], *, older_than_ms: int, with_others: bool, now_ms: int
) -> HoldingSnapshots:
    """Find the snapshots that refer to files with these names. Raises StorageError.

    One may expire if not current since `older_than_ms`, in no history of a tag or other branch, not kept by
    `history.expire.*`, and the archiver's (unless `with_others`).
    """
    metadata = table.iceberg.metadata
    current_until = _current_until(metadata)
    holding = _holding(table, frozenset(files))
    parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in metadata.snapshots}
    named: dict[str, int] = {}
    kept: set[int] = set()
    for name, ref in metadata.refs.items():
        line: int | None = ref.snapshot_id
        while name != MAIN_BRANCH and line in parents:
            kept.add(line)
            if line in holding:
                named.setdefault(name, line)
            line = parents[line]
    owner = OwnerRetention.of(metadata)
    owners = owner.kept(metadata, now_ms=now_ms)
    going, young, foreign, owned = list[Snapshot](), list[Snapshot](), list[Snapshot](), list[Snapshot]()
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id not in holding or snapshot.snapshot_id in kept:
            continue
        if snapshot.snapshot_id == metadata.current_snapshot_id or current_until[snapshot.snapshot_id] >= older_than_ms:
            young.append(snapshot)
        elif snapshot.snapshot_id in owners:
            owned.append(snapshot)
        elif with_others or is_ours(snapshot):
            going.append(snapshot)
        else:
            foreign.append(snapshot)
    return HoldingSnapshots(
        going=tuple(going),
        owned=tuple(owned),
        settings=owner.settings if owned else {},
        young=tuple(young),
        others=tuple(foreign),
        named=named,
    )


def _current_until(metadata: TableMetadata) -> dict[int, int]:
    """In ms since 1970; a snapshot's creation if it was never current or isn't in the log."""
    times = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in metadata.snapshots}
    for before, after in pairwise(metadata.snapshot_log):
        if before.snapshot_id in times:
            times[before.snapshot_id] = max(times[before.snapshot_id], after.timestamp_ms)
    # A log that was cut short lacks who followed: the child of a snapshot took its place, or came after what did.
    for snapshot in metadata.snapshots:
        if snapshot.parent_snapshot_id in times:
            times[snapshot.parent_snapshot_id] = max(times[snapshot.parent_snapshot_id], snapshot.timestamp_ms)
    return times


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleFile:
    path: str
    partition: int
    start_offset: int
    end_offset: int


def stale_files(table: ArchiveTable, erased: Mapping[int, Sequence[tuple[int, int]]]) -> tuple[StaleFile, ...]:
    """Return stale files of any engine that may have erased offsets. Raises StorageError.

    Files without bounds may have any.
    """
    snapshots = table.iceberg.metadata.snapshots
    current = table.iceberg.current_snapshot()
    with ThreadPoolExecutor(READERS, thread_name_prefix="snapshots") as pool:
        lists = dict(
            zip(
                (snapshot.snapshot_id for snapshot in snapshots),
                pool.map(partial(manifests_of, table.iceberg), snapshots),
                strict=True,
            )
        )
        present = lists[current.snapshot_id] if current is not None else []
        kept = {file for entries in pool.map(partial(_files, table), present) for file in entries}
        older = {manifest.manifest_path: manifest for entries in lists.values() for manifest in entries}
        for manifest in present:
            older.pop(manifest.manifest_path, None)
        entries = {file for files in pool.map(partial(_files, table), older.values()) for file in files}
    gone = entries - kept
    return tuple(
        StaleFile(path=path, partition=partition, start_offset=start, end_offset=end)
        for path, low, high, first, last in sorted(gone, key=lambda file: file[0])
        for partition, spans in sorted(erased.items())
        if low <= partition <= high
        for start, end in [(max(0, first), last + 1)]
        if any(begin < end and start < until for begin, until in spans)
    )


def _files(table: ArchiveTable, manifest: ManifestFile) -> set[tuple[str, int, int, int, int]]:
    return {
        (
            entry.data_file.file_path,
            *_bounds(entry.data_file, PARTITION_ID, 2**31 - 1),
            *_bounds(entry.data_file, OFFSET_ID, 2**63 - 2),
        )
        for entry in live_entries(table.io, manifest)
        if entry.data_file.content == DataFileContent.DATA
    }


def _bounds(file: DataFile, field_id: int, most: int) -> tuple[int, int]:
    low, high = (file.lower_bounds or {}).get(field_id), (file.upper_bounds or {}).get(field_id)
    if low is None or high is None:
        return 0, most
    return int.from_bytes(low, "little", signed=True), int.from_bytes(high, "little", signed=True)


def _holding(table: ArchiveTable, files: frozenset[str]) -> set[int]:
    snapshots = table.iceberg.metadata.snapshots
    with ThreadPoolExecutor(READERS, thread_name_prefix="snapshots") as pool:
        lists = list(pool.map(partial(manifests_of, table.iceberg), snapshots))
        manifests = {manifest.manifest_path: manifest for listed in lists for manifest in listed}
        bad = {
            manifest.manifest_path
            for manifest, has in zip(
                manifests.values(), pool.map(partial(_has, table, files), manifests.values()), strict=True
            )
            if has
        }
    return {
        snapshot.snapshot_id
        for snapshot, listed in zip(snapshots, lists, strict=True)
        if any(manifest.manifest_path in bad for manifest in listed)
    }


def _has(table: ArchiveTable, files: frozenset[str], manifest: ManifestFile) -> bool:
    return any(file_name(entry.data_file.file_path) in files for entry in live_entries(table.io, manifest))
