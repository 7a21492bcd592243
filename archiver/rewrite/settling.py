"""Settle rewrites that a kill interrupted, each once, even if the table no longer names its commit.

To end one, the registry first forbids attempts. Prepared ones assert the current or an older snapshot, so once the
table has a later one, none can land.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from enum import Enum, auto
from functools import partial
from typing import Final

from ulid import ULID

from archiver.commit.commit_staged import settle_staged
from archiver.commit.file_values import restore_values
from archiver.commit.table_rows import TableRows
from archiver.rewrite.table_work import TableWork
from archiver.storage.formats import FORMATS
from archiver.storage.journal import TableJournal
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import RowRange
from catalog.errors import RewriteRefused
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import find_commit
from catalog.model import TopicRow
from catalog.ranges.rewrite import Rewrite
from catalog.ranges.spans import uncovered
from catalog.registry import Registry


def settle_rewrites(work: TableWork, known: ArchiveTable, *, ends_silent: bool = False) -> tuple[Rewrite, ...]:
    """Settle staged ranges, then rewrites; return the rewrites that may still land.

    Raises TableMissing if the table was dropped or replaced. `ends_silent` ends rewrites without a live process.
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
    snapshots = {entry.commit_id: find_commit(table, entry.commit_id) for entry in unfinished}
    undecided: list[Rewrite] = []
    for rewrite in sorted(unfinished, key=lambda entry: snapshots[entry.commit_id] is None):
        snapshot_id = snapshots[rewrite.commit_id]
        is_named = snapshot_id is not None
        match RewriteOutcome.LANDED if is_named else outcome_of(rewrite, table, files, registry, journal):
            case RewriteOutcome.LANDED:
                journal.keep_rewrite(rewrite)
                trail.rewrote(rewrite, snapshot_id=snapshot_id, is_late=True)
                registry.rewrites.finish(topic, rewrite)
                new = {path: FORMATS.of_path(path) for path in rewrite.new_paths if path in files}
                restore_values(registry, topic, new, ObjectStore.of_table(table.iceberg))
            case RewriteOutcome.DISPLACED:
                registry.rewrites.abandon(topic, rewrite)
            case RewriteOutcome.OPEN if rewrite.commit_id in over:
                registry.rewrites.abandon(topic, rewrite)
            case RewriteOutcome.OPEN:
                undecided.append(rewrite)
    return tuple(undecided)


SILENT_SECONDS: Final = 3_600.0
"""A rewrite that was begun so long ago is not on its way to the catalog any more. A commit takes minutes at most."""


def check_goes_on(rewrite: Rewrite, topic: TopicRow, registry: Registry) -> None:
    """Raise RewriteRefused if another run ended the rewrite. Load the table first."""
    if not registry.rewrites.may_go_on(topic, rewrite):
        raise RewriteRefused(
            "another run gave this rewrite up, as it wasn't committed for an hour; nothing was changed. Run it again",
            command=rewrite.reason,
            commit=rewrite.commit_id,
        )


def end_silent(
    rewrites: Sequence[Rewrite], topic: TopicRow, registry: Registry, load: Callable[[], ArchiveTable]
) -> frozenset[str]:
    """Begin to end old rewrites; return the commit ids that can't land any more.

    Check the table afterwards: a rewrite that landed is there by then.
    """
    ending = registry.rewrites.ending(topic)
    for rewrite in rewrites:
        is_marked = rewrite.commit_id in ending
        if is_marked or registry.rewrites.begin_to_end(topic, rewrite, silent_seconds=SILENT_SECONDS):
            ending.setdefault(rewrite.commit_id, None)
    unnoted = [rewrite for rewrite in rewrites if ending.get(rewrite.commit_id, 0) is None]
    if unnoted:
        sequence = _sequence(load())
        for rewrite in unnoted:
            registry.rewrites.note_last_attempt(topic, rewrite, sequence=sequence)
    noted = {commit_id: sequence for commit_id, sequence in ending.items() if sequence is not None}
    reached = _sequence(load()) if noted else 0
    return frozenset(commit_id for commit_id, sequence in noted.items() if reached > sequence)


def _sequence(table: ArchiveTable) -> int:
    snapshot = table.iceberg.current_snapshot()
    return 0 if snapshot is None else snapshot.sequence_number or 0


class RewriteOutcome(Enum):
    LANDED = auto()
    DISPLACED = auto()
    OPEN = auto()


def outcome_of(
    rewrite: Rewrite, table: ArchiveTable, files: Container[str], registry: Registry, journal: TableJournal
) -> RewriteOutcome:
    """Judge a rewrite whose commit the table doesn't name. Record named ones first.

    Raises RegistryError and StorageError.
    """
    if any(path in files for path in rewrite.new_paths):
        return RewriteOutcome.LANDED
    if not rewrite.groups:
        return _of_a_note(rewrite, table, registry)
    if all(path in files for path in rewrite.old_paths):
        return RewriteOutcome.OPEN
    if any(path in files for path in rewrite.old_paths):
        return RewriteOutcome.DISPLACED
    may_be_its_own = _has_moved(table, rewrite, registry) or _landed_long_ago(table, rewrite)
    return (
        RewriteOutcome.LANDED
        if may_be_its_own and not _is_done_by_another(rewrite, journal)
        else RewriteOutcome.DISPLACED
    )


def _of_a_note(rewrite: Rewrite, table: ArchiveTable, registry: Registry) -> RewriteOutcome:
    if rewrite.erased:  # the table doesn't show them
        erased = registry.erasures.offsets(table.topic)
        is_left = any(uncovered([(start, end)], erased.get(partition, ())) for partition, start, end in rewrite.erased)
        return RewriteOutcome.OPEN if is_left else RewriteOutcome.DISPLACED
    if not rewrite.is_moved_in(table.first_offsets):
        return RewriteOutcome.OPEN
    recorded = registry.retention.first_offsets(table.topic)
    return RewriteOutcome.DISPLACED if rewrite.is_moved_in(recorded) else RewriteOutcome.LANDED


def _has_moved(table: ArchiveTable, rewrite: Rewrite, registry: Registry) -> bool:
    if not rewrite.first_offsets or rewrite.new_paths or not rewrite.is_moved_in(table.first_offsets):
        return False
    return not rewrite.is_moved_in(registry.retention.first_offsets(table.topic))


def _landed_long_ago(table: ArchiveTable, rewrite: Rewrite) -> bool:
    """Whether a removal landed although its snapshots expired.

    The table must not have more rows of the offsets than were to stay.
    """
    begun_ms = ULID.from_str(rewrite.commit_id).milliseconds
    if not all(snapshot.timestamp_ms > begun_ms for snapshot in table.iceberg.metadata.snapshots):
        return False
    staying: Counter[RowRange] = Counter()
    purged: set[RowRange] = set()
    for part in (span for group in rewrite.groups for span in group.all_spans):
        range_ = RowRange(partition=part.partition, start_offset=part.start_offset, end_offset=part.end_offset)
        staying[range_] += part.rows
        if part.erased or part.retired:
            purged.add(range_)
    if not purged:
        return False
    table_rows = TableRows(table, FORMATS)
    return all(len(table_rows.offsets(range_)) <= staying[range_] for range_ in purged)


def _is_done_by_another(rewrite: Rewrite, journal: TableJournal) -> bool:
    takers = journal.takers({*rewrite.old_paths})
    return bool(takers) and rewrite.commit_id not in takers
