"""Find out what became of rewrites that a kill interrupted, and record it.

A rewrite is remembered in the registry, committed to the table, then recorded. A kill at any step loses nothing: before
the commit the new files are orphans, after it the next run records the rewrite.
"""

from __future__ import annotations

from functools import partial

from archiver.commit.commit_staged import settle_staged
from archiver.rewrite.endings import end_silent
from archiver.rewrite.outcomes import Outcome, outcome_of
from archiver.rewrite.table_work import TableWork
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import find_commit
from catalog.ranges.rewrite import Rewrite


def settle_rewrites(work: TableWork, known: ArchiveTable, *, ends_silent: bool = False) -> tuple[Rewrite, ...]:
    """Record the outcome of staged ranges, then of rewrites that were begun; return the rewrites that may still land.

    `known` is loaded again. TableMissing if the table was dropped or replaced. With `ends_silent`, rewrites that no
    process goes on with are ended.
    """
    topic, registry, catalog, journal = known.topic, work.registry, work.catalog, work.journal
    trail = work.trail(topic)
    trail.begin()
    settle_staged(topic, registry, catalog, journal, load=partial(catalog.reload, known), after_rollback=True)
    begun = registry.rewrites.unfinished(topic)
    if not begun:
        return ()
    over = end_silent(begun, topic, registry, partial(catalog.reload, known)) if ends_silent else frozenset()
    table = catalog.reload(known)
    # After the table: what another run has put into it is among these, or is recorded.
    unfinished = registry.rewrites.unfinished(topic)
    paths = {path for rewrite in unfinished for path in (*rewrite.old_paths, *rewrite.new_paths)}
    files = work.manifests.files(table.iceberg).named(paths)
    snapshots = {each.commit_id: find_commit(table, each.commit_id) for each in unfinished}
    undecided: list[Rewrite] = []
    for rewrite in sorted(unfinished, key=lambda each: snapshots[each.commit_id] is None):
        snapshot_id = snapshots[rewrite.commit_id]
        is_named = snapshot_id is not None
        match Outcome.LANDED if is_named else outcome_of(rewrite, table, files, registry, journal):
            case Outcome.LANDED:
                journal.keep_rewrite(rewrite)
                trail.rewrote(rewrite, snapshot_id=snapshot_id, is_late=True)
                registry.rewrites.finish(topic, rewrite)
            case Outcome.DISPLACED:
                registry.rewrites.abandon(topic, rewrite)
            case Outcome.OPEN if rewrite.commit_id in over:
                registry.rewrites.abandon(topic, rewrite)
            case Outcome.OPEN:
                undecided.append(rewrite)
    return tuple(undecided)
