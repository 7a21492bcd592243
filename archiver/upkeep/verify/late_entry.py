"""The newest commit, whose journal entry may be missing after a kill.

Entries are written before the registry confirms, and before the next commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from catalog.iceberg import properties as keys
from catalog.iceberg.lineage import history, summary_of
from catalog.iceberg.offsets import decode_ranges

if TYPE_CHECKING:
    from archiver.upkeep.verify.sources import VerifySources


@dataclass(frozen=True, slots=True, kw_only=True)
class LateEntry:
    """A commit without an entry, and its offsets; empty if there is none."""

    commit_id: str | None = None
    spans: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def has(self, partition: int, start: int, end: int) -> bool:
        first, last = self.spans.get(partition, (0, 0))
        return first <= start and end <= last

    def overlaps(self, partition: int, start: int, end: int) -> bool:
        """A compaction may have merged the commit's ranges."""
        first, last = self.spans.get(partition, (0, 0))
        return first < end and start < last


def late_entry(sources: VerifySources) -> LateEntry:
    journaled = {commit.commit_id for _, commit in sources.journal.commits}
    for snapshot in history(sources.table.iceberg.metadata):
        summary = summary_of(snapshot)
        commit_id = summary.get(keys.COMMIT_ID)
        if commit_id is None or keys.RANGES not in summary:
            continue
        if commit_id in journaled:
            break
        entry = LateEntry(commit_id=commit_id, spans=decode_ranges(summary[keys.RANGES]))
        return LateEntry() if _is_confirmed(entry, sources) else entry
    return LateEntry()


def _is_confirmed(entry: LateEntry, sources: VerifySources) -> bool:
    if sources.registry is not None and any(
        entry.overlaps(range_.partition, *range_.offsets) for range_ in sources.registry.ranges
    ):
        return True
    journaled = (range_ for _, commit in sources.journal.commits for range_ in commit.ranges)
    return any(entry.overlaps(recorded.partition, recorded.start_offset, recorded.end_offset) for recorded in journaled)
