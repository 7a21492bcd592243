"""Keeping a table small in the course of commits: old snapshots of ours expire, and the lists they alone had go.

Nothing depends on it: it may fail at any point, and be tried again with the next commit. Data files are never deleted
here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import TableRequirement, TableUpdate

from catalog.iceberg.append import delete
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.expiry import Retention, expirable, is_one_line, is_worth_a_commit, removal

Load = Callable[[], ArchiveTable]
Send = Callable[[ArchiveTable, tuple[TableRequirement, ...], tuple[TableUpdate, ...]], TableMetadata]


def housekeep(known: ArchiveTable, retention: Retention, *, load: Load, send: Send) -> int:
    """Expire what `known`, a table loaded not long ago, has too much of; returns how many snapshots went."""
    if not is_worth_a_commit(expirable(known.iceberg.metadata, retention, now_ms=_now_ms()), retention):
        return 0
    table = load()
    before = table.iceberg.metadata
    going = expirable(before, retention, now_ms=_now_ms())
    if going:
        after = send(table, *removal(before, going))
        _delete_lists(table.io, going, after)
    return len(going)


def _delete_lists(io: FileIO, gone: Sequence[Snapshot], after: TableMetadata) -> None:
    """Delete the manifest lists of expired snapshots, and the manifests that no snapshot left has."""
    delete(io, [*_unreachable(io, gone, after), *(one.manifest_list for one in gone)])


def _unreachable(io: FileIO, gone: Sequence[Snapshot], after: TableMetadata) -> list[str]:
    """Manifests that merging appends replaced; none where there are branches, and orphan removal has to look.

    Nor where something older stayed: what went may have been set back, and later snapshots stand on what it stood on.
    """
    if not is_one_line(after) or not after.snapshots:
        return []
    oldest = min(after.snapshots, key=_sequence)
    if _sequence(oldest) < max(map(_sequence, gone)):
        return []
    kept = {manifest.manifest_path for manifest in oldest.manifests(io)}
    before = {manifest.manifest_path for one in gone for manifest in one.manifests(io)}
    return sorted(before - kept)


def _sequence(snapshot: Snapshot) -> int:
    return snapshot.sequence_number or 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
