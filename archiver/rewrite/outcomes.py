"""What became of a rewrite that was begun, where the table has no snapshot that says so: snapshots expire.

Two runs may want the same. What one of them did must not be taken for what the other did: each act is recorded once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from enum import Enum, auto

from ulid import ULID

from archiver.commit.table_rows import TableRows
from archiver.storage.formats import FORMATS
from archiver.storage.journal import TableJournal
from archiver.storage.segment import RowRange
from catalog.iceberg.archive_table import ArchiveTable
from catalog.ranges.rewrite import Rewrite
from catalog.ranges.spans import uncovered
from catalog.registry import Registry


class Outcome(Enum):
    """It landed, it never will, or it may still land."""

    LANDED = auto()
    DISPLACED = auto()
    OPEN = auto()


def outcome_of(
    rewrite: Rewrite, table: ArchiveTable, files: Container[str], registry: Registry, journal: TableJournal
) -> Outcome:
    """Judge a rewrite whose commit the table doesn't name. `files` are those of its files that the table has.

    Those that the table names have to be recorded before. Raises the leaves of RegistryError and StorageError.
    """
    if any(path in files for path in rewrite.new_paths):
        return Outcome.LANDED
    if not rewrite.groups:
        return _of_a_note(rewrite, table, registry)
    if all(path in files for path in rewrite.old_paths):
        return Outcome.OPEN
    if any(path in files for path in rewrite.old_paths):
        return Outcome.DISPLACED
    may_be_its_own = _has_moved(table, rewrite, registry) or _landed_long_ago(table, rewrite)
    return Outcome.LANDED if may_be_its_own and not _is_done_by_another(rewrite, journal) else Outcome.DISPLACED


def _of_a_note(rewrite: Rewrite, table: ArchiveTable, registry: Registry) -> Outcome:
    """Of a rewrite that only moves first offsets, or only notes erased ones. Where all is recorded, another did it."""
    if rewrite.erased:  # the table doesn't show them
        known = registry.erasures.offsets(table.topic)
        is_left = any(uncovered([(start, end)], known.get(partition, ())) for partition, start, end in rewrite.erased)
        return Outcome.OPEN if is_left else Outcome.DISPLACED
    if not rewrite.is_moved_in(table.first_offsets):
        return Outcome.OPEN
    recorded = registry.retention.first_offsets(table.topic)
    return Outcome.DISPLACED if rewrite.is_moved_in(recorded) else Outcome.LANDED


def _has_moved(table: ArchiveTable, rewrite: Rewrite, registry: Registry) -> bool:
    """Whether partitions begin where a rewrite without new files wanted it, and nothing else that is known did that."""
    if not rewrite.first_offsets or rewrite.new_paths or not rewrite.is_moved_in(table.first_offsets):
        return False
    return not rewrite.is_moved_in(registry.retention.first_offsets(table.topic))


def _landed_long_ago(table: ArchiveTable, rewrite: Rewrite) -> bool:
    """Whether a rewrite that left records out on purpose is in the table though no snapshot of that time is left.

    Its old files are gone then, as it wanted; but others may have put them together, with these records. So the table
    must not have more records of the offsets than were to stay.
    """
    begun_ms = ULID.from_str(rewrite.commit_id).milliseconds
    if not all(each.timestamp_ms > begun_ms for each in table.iceberg.metadata.snapshots):
        return False
    staying: Counter[RowRange] = Counter()
    purged: set[RowRange] = set()
    for each in (span for group in rewrite.groups for span in group.all_spans):
        place = RowRange(partition=each.partition, start_offset=each.start_offset, end_offset=each.end_offset)
        staying[place] += each.rows
        if each.erased or each.retired:
            purged.add(place)
    if not purged:
        return False
    there = TableRows(table, FORMATS)
    return all(len(there.offsets(place)) <= staying[place] for place in purged)


def _is_done_by_another(rewrite: Rewrite, journal: TableJournal) -> bool:
    """Whether the journal knows another rewrite that took the old files out of the table, and not this one."""
    takers = journal.takers({*rewrite.old_paths})
    return bool(takers) and rewrite.commit_id not in takers
