"""The end of rewrites that a kill left before their commit, and whose old files nobody takes.

Such a rewrite may still land, as far as the table shows: its process may only be slow. So it is ended in two steps.
First the registry is told that no further attempt to commit it may be made; whoever makes one asks before. Attempts
that were prepared until then assert the snapshot that the table has after that, or an older one. Once the table has a
later one, none of them can land. Then the rewrite is given up, and its new files are orphans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from catalog.errors import RewriteRefused
from catalog.iceberg.archive_table import ArchiveTable
from catalog.model import TopicRow
from catalog.ranges.rewrite import Rewrite
from catalog.registry import Registry

SILENT_SECONDS: Final = 3_600.0
"""A rewrite that was begun so long ago is not on its way to the catalog any more. A commit takes minutes at most."""


def check_goes_on(rewrite: Rewrite, topic: TopicRow, registry: Registry) -> None:
    """RewriteRefused where another run has ended the rewrite. Call this after the table is loaded for an attempt."""
    if not registry.rewrites.may_go_on(topic, rewrite):
        raise RewriteRefused(
            "another run gave this rewrite up, as it wasn't committed for an hour; nothing was changed. Run it again",
            command=rewrite.reason,
            commit=rewrite.commit_id,
        )


def end_silent(
    rewrites: Sequence[Rewrite], topic: TopicRow, registry: Registry, load: Callable[[], ArchiveTable]
) -> frozenset[str]:
    """Begin to end those that are old enough, and return the commit ids of those that can't land later than now.

    `rewrites` have no recorded outcome. They are looked for in the table afterwards: one that landed has one by that.
    """
    known = registry.rewrites.ending(topic)
    for rewrite in rewrites:
        is_marked = rewrite.commit_id in known
        if is_marked or registry.rewrites.begin_to_end(topic, rewrite, silent_seconds=SILENT_SECONDS):
            known.setdefault(rewrite.commit_id, None)
    unnoted = [each for each in rewrites if known.get(each.commit_id, 0) is None]
    if unnoted:
        sequence = _sequence(load())
        for rewrite in unnoted:
            registry.rewrites.note_last_attempt(topic, rewrite, sequence=sequence)
    noted = {commit_id: sequence for commit_id, sequence in known.items() if sequence is not None}
    reached = _sequence(load()) if noted else 0
    return frozenset(commit_id for commit_id, sequence in noted.items() if reached > sequence)


def _sequence(table: ArchiveTable) -> int:
    """The sequence number of the table's current snapshot; 0 if it has none."""
    snapshot = table.iceberg.current_snapshot()
    return 0 if snapshot is None else snapshot.sequence_number or 0
