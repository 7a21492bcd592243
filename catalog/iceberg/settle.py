"""Settle staged ranges: in the table, never will be, or waiting (docs/concepts.md, step 4).

The snapshot that advanced the partition decides; if expired, the offsets. A stale table never refuses a range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

from pyiceberg.table.snapshots import Snapshot

from catalog.errors import TableError
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import check_lineage, summary_of
from catalog.iceberg.manifest_lists import entries_of, manifests_of
from catalog.iceberg.offsets import decode_ranges, in_order
from catalog.model import TranslatedRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """The ids are None if the snapshot has expired."""

    range: TranslatedRange
    commit_id: str | None
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    range: TranslatedRange
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Confirm the landed ranges, reject the refused ones, commit the waiting ones."""

    landed: tuple[Landed, ...]
    refused: tuple[Refused, ...]
    waiting: tuple[TranslatedRange, ...]


def settle(table: ArchiveTable, ranges: Sequence[TranslatedRange], *, after_rollback: bool = False) -> Settled:
    """Reads manifests only of commits in doubt.

    Raises RolledBack after a rollback, unless `after_rollback`: then ranges once in the table count as landed.
    """
    if not after_rollback:
        check_lineage(table)
    history = _History(table)
    offsets = table.offsets
    landed: list[Landed] = []
    refused: list[Refused] = []
    waiting: list[TranslatedRange] = []
    for partition, group in groupby(in_order(ranges), key=lambda range_: range_.partition):
        end = offsets[partition].next_offset if partition in offsets else None
        follows_refused = False
        for range_ in group:
            match _fate(range_, end, history, follows_refused=follows_refused):
                case Landed() as fate:
                    landed.append(fate)
                case Refused() as fate:
                    refused.append(fate)
                    follows_refused = True
                case None:
                    waiting.append(range_)
                    end = range_.end_offset
    return Settled(landed=tuple(landed), refused=tuple(refused), waiting=tuple(waiting))


def _fate(
    one: TranslatedRange, end: int | None, history: _History, *, follows_refused: bool
) -> Landed | Refused | None:
    """None if the range waits: it starts at its partition's `end`, or later and no earlier one was refused."""
    if end is None or one.start_offset == end or (one.start_offset > end and not follows_refused):
        return None
    if one.start_offset > end:
        return Refused(range=one, reason=f"starts at {one.start_offset}, its partition ends at {end}")
    if one.end_offset > end:
        return Refused(range=one, reason=f"the table holds its offsets up to {end} from elsewhere")
    snapshot = history.that_advanced(one)
    if snapshot is None:
        return Landed(range=one, commit_id=None)
    commit_id = summary_of(snapshot).get(keys.COMMIT_ID)
    present = [file.path in history.added_paths(snapshot) for file in one.files]
    if all(present):
        return Landed(range=one, commit_id=commit_id, snapshot_id=snapshot.snapshot_id)
    if any(present):
        raise TableError(
            "a snapshot has only some files of a range, which are committed together or not at all: somebody changed"
            " its metadata. Nothing was changed; restore the table",
            topic=one.topic,
            partition=one.partition,
            offsets=one.span,
            commit_id=commit_id,
            files=[file.path for file in one.files],
        )
    return Refused(range=one, reason=f"commit {commit_id} brought its offsets from elsewhere")


class _History:
    def __init__(self, table: ArchiveTable) -> None:
        self._io, self._metadata = table.io, table.iceberg.metadata
        self._advances = tuple(
            (snapshot, decode_ranges(summary_of(snapshot)[keys.RANGES]))
            for snapshot in table.iceberg.metadata.snapshots
            if keys.RANGES in summary_of(snapshot)
        )
        self.added_paths = cache(self._added_paths)

    def that_advanced(self, one: TranslatedRange) -> Snapshot | None:
        for snapshot, spans in reversed(self._advances):
            start, end = spans.get(one.partition, (0, 0))
            if start <= one.start_offset < end:
                return snapshot
        return None

    def _added_paths(self, snapshot: Snapshot) -> frozenset[str]:
        return frozenset(
            entry.data_file.file_path
            for manifest in manifests_of(self._io, self._metadata, snapshot)
            if manifest.added_snapshot_id == snapshot.snapshot_id
            for entry in entries_of(self._io, manifest)
        )
