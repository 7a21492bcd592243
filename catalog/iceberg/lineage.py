"""Check that the main branch has the archiver's commits up to the head, the newest with records (ADR 0026).

`archiver.head` names the head after its expiry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot

from catalog.errors import RolledBack, TableError
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.offsets import decode_ranges
from catalog.iceberg.schema_history import schema_history
from catalog.ranges.spans import joined


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The snapshot that last added records. Sequence numbers only grow."""

    snapshot_id: int
    sequence: int

    def to_text(self) -> str:
        return json.dumps([self.snapshot_id, self.sequence], separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Raises TableError for foreign text."""
        try:
            snapshot_id, sequence = json.loads(text)
            return cls(snapshot_id=int(snapshot_id), sequence=int(sequence))
        except (ValueError, TypeError) as error:
            msg = (
                "the table property archiver.head cannot be read: somebody changed it. Set it again to what an earlier"
                " metadata file of the table has"
            )
            raise TableError(msg, found=text[:80]) from error


class Descent(StrEnum):
    KEPT = "kept"
    """The head is the current snapshot, or one of its ancestors."""
    ROLLED_BACK = "rolled back"
    """The head is not in the history: somebody set the branch back."""
    UNKNOWN = "unknown"
    """The ancestors that could tell have expired. The content of the table decides."""


def head_of(metadata: TableMetadata) -> Head | None:
    text = metadata.properties.get(keys.HEAD)
    recorded = [] if text is None else [Head.from_text(text)]
    seen = (
        Head(snapshot_id=snapshot.snapshot_id, sequence=snapshot.sequence_number or 0)
        for snapshot in metadata.snapshots
        if keys.RANGES in summary_of(snapshot)
    )
    return max((*recorded, *seen), key=lambda head: head.sequence, default=None)


def descent(metadata: TableMetadata, head: Head) -> Descent:
    """As far as retained. Sequence numbers fall from child to parent."""
    for snapshot in history(metadata):
        if snapshot.snapshot_id == head.snapshot_id:
            return Descent.KEPT
        if (snapshot.sequence_number or 0) < head.sequence:
            return Descent.ROLLED_BACK
    return Descent.ROLLED_BACK if metadata.current_snapshot_id is None else Descent.UNKNOWN


def check_lineage(table: ArchiveTable) -> None:
    """Raise RolledBack if main's retained history lost the archiver's last commit."""
    check_history(table.iceberg.metadata, topic=table.topic.topic, table=table.topic.table)


def check_history(metadata: TableMetadata, *, topic: str, table: str) -> None:
    head = head_of(metadata)
    if head is not None and descent(metadata, head) is Descent.ROLLED_BACK:
        raise _rolled_back(metadata, topic, table, missing=_listed(_unreached(metadata)), head=head)


def rolled_back(table: ArchiveTable, *, missing: str, head: Head | None = None) -> RolledBack:
    return _rolled_back(table.iceberg.metadata, table.topic.topic, table.topic.table, missing=missing, head=head)


def _rolled_back(metadata: TableMetadata, topic: str, table: str, *, missing: str, head: Head | None) -> RolledBack:
    return RolledBack(
        "others set the table back to an earlier state, whose history lacks commits that added records: run"
        " `archiver refill TOPIC`, which brings back what is missing; or undo it, by setting the table forward again",
        topic=topic,
        table=table,
        missing=missing or "nothing but the history",
        head=None if head is None else head.snapshot_id,
        current=metadata.current_snapshot_id,
    )


def history(metadata: TableMetadata) -> Iterator[Snapshot]:
    """Newest first, as far as retained."""
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    at = metadata.current_snapshot_id
    while at is not None and at in snapshots:
        yield snapshots[at]
        at = snapshots[at].parent_snapshot_id


def since(metadata: TableMetadata, snapshot_id: int | None) -> tuple[Snapshot, ...] | None:
    """Newest first, without an id since the creation. None if the retained history lacks the ancestor."""
    if snapshot_id is None:
        return _since_creation(metadata)
    snapshots: list[Snapshot] = []
    for snapshot in history(metadata):
        if snapshot.snapshot_id == snapshot_id:
            return tuple(snapshots)
        snapshots.append(snapshot)
    if snapshots and snapshots[-1].parent_snapshot_id == snapshot_id:  # it expired, and nothing after it did
        return tuple(snapshots)
    return None


def _since_creation(metadata: TableMetadata) -> tuple[Snapshot, ...] | None:
    line = tuple(history(metadata))
    if not line:
        return () if metadata.current_snapshot_id is None and metadata.next_sequence_number() <= 1 else None
    first = line[-1]  # if an engine replaced the whole table, its number is a later one
    return line if first.parent_snapshot_id is None and first.sequence_number == 1 else None


def cut_at(metadata: TableMetadata, sequence: int) -> int | None:
    """The oldest retained snapshot, if one after this sequence number may have expired: numbers have no gaps."""
    line = tuple(history(metadata))
    return line[-1].snapshot_id if line and (line[-1].sequence_number or 0) > sequence + 1 else None


def lacks_columns(metadata: TableMetadata, snapshot: Snapshot) -> bool:
    """Whether another engine compacted with a schema that lacks columns of the table."""
    schema = next((schema for schema in metadata.schemas if schema.schema_id == snapshot.schema_id), None)
    if schema is None or is_ours(snapshot) or not _is(snapshot, Operation.REPLACE):
        return False
    ids = schema.field_ids
    return any(
        not earlier.field_ids <= ids for earlier in schema_history(metadata) if earlier.schema_id != schema.schema_id
    )


def is_ours(snapshot: Snapshot) -> bool:
    return keys.COMMIT_ID in summary_of(snapshot)


def summary_of(snapshot: Snapshot) -> Mapping[str, str]:
    return snapshot.summary.additional_properties if snapshot.summary else {}


def _is(snapshot: Snapshot, operation: Operation) -> bool:
    return snapshot.summary is not None and snapshot.summary.operation is operation


def set_back(table: ArchiveTable) -> dict[int, list[tuple[int, int]]]:
    """Offsets lost by a rollback: of retained snapshots off main, and all after main's last."""
    metadata = table.iceberg.metadata
    unreached = _unreached(metadata)
    reached: dict[int, int] = {}
    for snapshot in history(metadata):
        for partition, (_, end) in decode_ranges(summary_of(snapshot).get(keys.RANGES, "{}")).items():
            reached[partition] = max(end, reached.get(partition, 0))
    for partition, end in reached.items():
        if (following := table.offsets[partition].next_offset if partition in table.offsets else end) > end:
            unreached.setdefault(partition, []).append((end, following))
    return {partition: joined(spans) for partition, spans in unreached.items()}


def first_archived(metadata: TableMetadata) -> dict[int, int]:
    """By partition, of retained snapshots of any history."""
    first: dict[int, int] = {}
    for snapshot in metadata.snapshots:
        for partition, (start, _) in decode_ranges(summary_of(snapshot).get(keys.RANGES, "{}")).items():
            first[partition] = min(start, first.get(partition, start))
    return first


def _unreached(metadata: TableMetadata) -> dict[int, list[tuple[int, int]]]:
    reached = {reachable.snapshot_id for reachable in history(metadata)}
    spans: dict[int, list[tuple[int, int]]] = {}
    for snapshot in metadata.snapshots:
        text = summary_of(snapshot).get(keys.RANGES)
        if text is not None and snapshot.snapshot_id not in reached:
            for partition, span in decode_ranges(text).items():
                spans.setdefault(partition, []).append(span)
    return spans


def _listed(spans: Mapping[int, Iterable[tuple[int, int]]]) -> str:
    return "; ".join(
        f"partition {partition} " + ", ".join(f"[{start}, {end})" for start, end in joined(ranges))
        for partition, ranges in sorted(spans.items())
    )
