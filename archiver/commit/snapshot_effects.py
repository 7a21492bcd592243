"""Effects of other engines' snapshots on rows, by manifest lists.

`operation` and summaries are only claims: an `append` may add delete files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from archiver.archive.manifests import manifests_of
from archiver.errors import StorageError
from catalog.iceberg.lineage import history, is_ours, lacks_columns, since, summary_of

ADDED_DELETES: Final = frozenset(
    {
        "added-delete-files",
        "added-equality-delete-files",
        "added-position-delete-files",
        "added-dvs",
        "added-equality-deletes",
        "added-position-deletes",
    }
)
"""Entries in the summary of a snapshot that removed rows without touching their files."""

NAMED_SNAPSHOTS: Final = 3


def only_adds(table: Table, snapshot: Snapshot) -> bool:
    """True for the archiver's, and for an append that kept every file."""
    if is_ours(snapshot):
        return True
    if _operation(snapshot) is not Operation.APPEND or _claims_deletes(snapshot):
        return False
    before, after = _lists(table, snapshot)
    if after is None or _adds_deletes(snapshot, after) or _removes_files(snapshot, after):
        return False
    return before is None or _rows(after) == _rows(before) + _added_rows(snapshot, after)


def keeps_rows(table: Table, snapshot: Snapshot) -> bool:
    """A compaction counts if its files have as many rows."""
    if _operation(snapshot) is not Operation.REPLACE or is_ours(snapshot):
        return only_adds(table, snapshot)
    if _claims_deletes(snapshot):
        return False
    before, after = _lists(table, snapshot)
    if after is None or _adds_deletes(snapshot, after):
        return False
    return before is None or _rows(after) == _rows(before)


def newly_written(table: Table, snapshot_id: int | None) -> tuple[Snapshot, ...]:
    """Return later snapshots that may have changed or added rows, newest first.

    All retained ones without a reachable `snapshot_id`.
    """
    metadata = table.metadata
    later = None if snapshot_id is None else since(metadata, snapshot_id)
    return tuple(
        snapshot for snapshot in (history(metadata) if later is None else later) if _may_change(table, snapshot)
    )


def _may_change(table: Table, snapshot: Snapshot) -> bool:
    if is_ours(snapshot):
        return False
    if lacks_columns(table.metadata, snapshot):
        return True
    operation = _operation(snapshot)
    if operation not in (Operation.REPLACE, Operation.DELETE):
        return True
    before, after = _lists(table, snapshot)
    if after is None:
        return False
    if operation is Operation.DELETE:
        return bool(_added_rows(snapshot, after))
    return before is not None and not _rows(after) <= _rows(before)


def done_by_others(table: Table) -> tuple[str, ...]:
    return tuple(
        f"snapshot {snapshot.snapshot_id}: {_named(snapshot)} by {_engine(snapshot)}"
        for snapshot in islice(_suspicious(table), NAMED_SNAPSHOTS)
    )


def _suspicious(table: Table) -> Iterator[Snapshot]:
    for snapshot in history(table.metadata):
        if not is_ours(snapshot) and (not keeps_rows(table, snapshot) or lacks_columns(table.metadata, snapshot)):
            yield snapshot


def _lists(table: Table, snapshot: Snapshot) -> tuple[list[ManifestFile] | None, list[ManifestFile] | None]:
    """None for a lost or damaged list."""
    parent_id = snapshot.parent_snapshot_id
    if parent_id is None:
        return [], _list(table, snapshot)
    parent = table.metadata.snapshot_by_id(parent_id)
    return None if parent is None else _list(table, parent), _list(table, snapshot)


def _list(table: Table, snapshot: Snapshot) -> list[ManifestFile] | None:
    try:
        return manifests_of(table, snapshot)
    except StorageError as error:
        if error.retryable:
            raise
        return None


def _claims_deletes(snapshot: Snapshot) -> bool:
    summary = summary_of(snapshot)
    return any(summary.get(name, "0") != "0" for name in ADDED_DELETES)


def _adds_deletes(snapshot: Snapshot, manifests: Sequence[ManifestFile]) -> bool:
    return any(
        manifest.content is ManifestContent.DELETES
        and manifest.added_snapshot_id == snapshot.snapshot_id
        and manifest.added_files_count != 0
        for manifest in manifests
    )


def _removes_files(snapshot: Snapshot, manifests: Sequence[ManifestFile]) -> bool:
    return any(
        manifest.content is ManifestContent.DATA
        and manifest.added_snapshot_id == snapshot.snapshot_id
        and manifest.deleted_files_count != 0
        for manifest in manifests
    )


def _rows(manifests: Sequence[ManifestFile]) -> float:
    """NaN (equal to nothing) if a count is missing."""
    counts = [
        count
        for manifest in manifests
        if manifest.content is ManifestContent.DATA
        for count in (manifest.added_rows_count, manifest.existing_rows_count)
    ]
    return sum(math.nan if count is None else count for count in counts)


def _added_rows(snapshot: Snapshot, manifests: Sequence[ManifestFile]) -> int:
    return sum(
        manifest.added_rows_count or 0
        for manifest in manifests
        if manifest.content is ManifestContent.DATA and manifest.added_snapshot_id == snapshot.snapshot_id
    )


def _operation(snapshot: Snapshot) -> Operation | None:
    return snapshot.summary.operation if snapshot.summary else None


def _named(snapshot: Snapshot) -> str:
    operation = _operation(snapshot)
    if operation is None:
        return "unknown"
    return "append (it removes rows)" if operation is Operation.APPEND else operation.value


def _engine(snapshot: Snapshot) -> str:
    summary = summary_of(snapshot)
    if "trino_query_id" in summary:
        return f"Trino (query {summary['trino_query_id']})"
    named = " ".join(summary[key] for key in ("engine-name", "engine-version") if key in summary)
    return named or "an engine that it doesn't name"
