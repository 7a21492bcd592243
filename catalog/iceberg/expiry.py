"""Decide which of the archiver's snapshots to expire (docs/table-upkeep.md).

Never snapshots of other engines, tags and branches, or kept by `history.expire.*`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotsUpdate,
    TableRequirement,
    TableUpdate,
)

from catalog.iceberg.lineage import head_of, is_ours, since
from catalog.iceberg.owner_retention import OwnerRetention

SNAPSHOT_BYTES = 400
"""About how much a snapshot takes in the table's metadata, besides its summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRetention:
    """Keep the newest `keep` snapshots and ones younger than `seconds`, up to `most_bytes` of metadata.

    At least `least` stay. A commit over 10,000 partitions takes 300 KB.
    """

    seconds: float = 86_400.0
    keep: int = 100
    most_bytes: int = 3 << 20
    least: int = 10
    batch: int = 20
    """A commit is spent only on this many expirable snapshots, or on a quarter of `most_bytes` of them."""


def expirable(metadata: TableMetadata, retention: SnapshotRetention, *, now_ms: int) -> tuple[Snapshot, ...]:
    needed = _needed(metadata) | OwnerRetention.of(metadata).kept(metadata, now_ms=now_ms)
    oldest_ms = now_ms - int(retention.seconds * 1_000)
    taken = 0
    going: list[Snapshot] = []
    newest_first = sorted(
        metadata.snapshots, key=lambda entry: (entry.sequence_number or 0, entry.timestamp_ms), reverse=True
    )
    for index, snapshot in enumerate(newest_first):
        taken += _size(snapshot)
        stays = index < retention.least or (
            taken <= retention.most_bytes and (index < retention.keep or snapshot.timestamp_ms >= oldest_ms)
        )
        if not stays and is_ours(snapshot) and snapshot.snapshot_id not in needed:
            going.append(snapshot)
    return tuple(reversed(going))


def is_worth_a_commit(going: Sequence[Snapshot], retention: SnapshotRetention) -> bool:
    return len(going) >= retention.batch or sum(map(_size, going)) >= retention.most_bytes // 4


def removal(
    metadata: TableMetadata, going: Sequence[Snapshot]
) -> tuple[tuple[TableRequirement, ...], tuple[TableUpdate, ...]]:
    current = AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": metadata.current_snapshot_id})
    return (
        (AssertTableUUID(uuid=metadata.table_uuid), current),
        (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": [snapshot.snapshot_id for snapshot in going]}),),
    )


def is_one_line(metadata: TableMetadata) -> bool:
    """Whether snapshots form one line, so that files missing in the oldest never return."""
    return set(_ancestors(metadata, metadata.current_snapshot_id)) == {
        snapshot.snapshot_id for snapshot in metadata.snapshots
    }


def _needed(metadata: TableMetadata) -> set[int]:
    needed = set(_down_to_head(metadata))
    for name, ref in metadata.refs.items():
        needed.add(ref.snapshot_id)
        if name != MAIN_BRANCH:
            needed.update(_ancestors(metadata, ref.snapshot_id))
    return needed


def _down_to_head(metadata: TableMetadata) -> Iterator[int]:
    """The head, and snapshots of other engines and rewrites on top, which prove that it is in the history."""
    head = head_of(metadata)
    if head is not None:
        yield head.snapshot_id
        above = since(metadata, head.snapshot_id)
        yield from (snapshot.snapshot_id for snapshot in above or ())


def _ancestors(metadata: TableMetadata, snapshot_id: int | None) -> Iterator[int]:
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    while snapshot_id in snapshots:
        yield snapshot_id
        snapshot_id = snapshots[snapshot_id].parent_snapshot_id


def _size(snapshot: Snapshot) -> int:
    summary = snapshot.summary.additional_properties if snapshot.summary else {}
    return SNAPSHOT_BYTES + len(json.dumps(summary))
