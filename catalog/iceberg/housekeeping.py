"""Expire the archiver's snapshots and delete their manifests.

The next commit repeats failures. Nothing expires while the owner forbids deleting files (`deletion_gate`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import TableRequirement, TableUpdate

from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.deletion_gate import TableObjects, delete_all, is_shared, refuse_shared
from catalog.iceberg.expiry import SnapshotRetention, expirable, is_one_line, is_worth_a_commit, removal
from catalog.iceberg.manifest_lists import manifests_of
from catalog.iceberg.rest import FAILURES

Load = Callable[[], ArchiveTable]
Send = Callable[[ArchiveTable, tuple[TableRequirement, ...], tuple[TableUpdate, ...]], TableMetadata]


def housekeep(known: ArchiveTable, retention: SnapshotRetention, *, load: Load, send: Send) -> int:
    if is_shared(known.properties) or not is_worth_a_commit(
        expirable(known.iceberg.metadata, retention, now_ms=_now_ms()), retention
    ):
        return 0
    table = load()
    if is_shared(table.properties):
        return 0
    before = table.iceberg.metadata
    going = expirable(before, retention, now_ms=_now_ms())
    if going:
        after = _remove(table, going, load=load, send=send)
        gone = [*_unreachable(table.io, before, going, after), *(snapshot.manifest_list for snapshot in going)]
        delete_all(table.io, gone, TableObjects.of(load, table))
    return len(going)


def expire(table: ArchiveTable, going: Sequence[Snapshot], *, load: Load, send: Send) -> tuple[str, ...]:
    """Return manifests possibly left, which have bounds of keys and values.

    Nothing is deleted if the table changed. Raises FilesShared if the owner forbids it.
    """
    refuse_shared(load().properties, table.topic.table)
    io = table.io
    metadata = table.iceberg.metadata
    before = _manifests(io, metadata, going)
    gone = {expired.snapshot_id for expired in going}
    # A list that can't be read stops it here: later, snapshots would have gone, and their manifests been left behind.
    _manifests(io, metadata, (snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in gone))
    after = _remove(table, going, load=load, send=send)
    kept = _manifests(io, metadata, after.snapshots)
    gone_files = [*sorted(before - kept), *(expired.manifest_list for expired in going)]
    return delete_all(io, gone_files, TableObjects.of(load, table))


def _remove(table: ArchiveTable, going: Sequence[Snapshot], *, load: Load, send: Send) -> TableMetadata:
    """Return the new metadata. A failure is raised unless a fresh load lacks the snapshots."""
    try:
        return send(table, *removal(table.iceberg.metadata, going))
    except FAILURES:
        now = load()
        left = {snapshot.snapshot_id for snapshot in now.iceberg.metadata.snapshots}
        if now.last_sequence_number < table.last_sequence_number or any(
            expired.snapshot_id in left for expired in going
        ):
            raise
        return now.iceberg.metadata


def _unreachable(io: FileIO, before: TableMetadata, gone: Sequence[Snapshot], after: TableMetadata) -> list[str]:
    """Empty with branches or older remaining snapshots: later ones may share their base."""
    if not is_one_line(after) or not after.snapshots:
        return []
    oldest = min(after.snapshots, key=_sequence)
    if _sequence(oldest) < max(map(_sequence, gone)):
        return []
    return sorted(_manifests(io, before, gone) - _manifests(io, before, [oldest]))


def _manifests(io: FileIO, metadata: TableMetadata, snapshots: Iterable[Snapshot]) -> set[str]:
    return {manifest.manifest_path for snapshot in snapshots for manifest in manifests_of(io, metadata, snapshot)}


def _sequence(snapshot: Snapshot) -> int:
    return snapshot.sequence_number or 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
