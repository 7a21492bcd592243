"""Commit a rewrite: remember it in the registry, commit it to the table, record it.

Unconfirmed ranges of a killed commit are settled first: otherwise their journal entry would lack rewritten ranges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from archiver.archive.deletion_vectors import vector_place
from archiver.archive.table_files import ManifestReader, TableFile
from archiver.commit.commit_staged import settle_staged
from archiver.commit.file_values import keep_values
from archiver.errors import StorageError
from archiver.fault_points import FaultPoint, pass_point
from archiver.rewrite.settling import check_goes_on, settle_rewrites
from archiver.rewrite.table_work import TableWork
from archiver.storage.objects import ObjectStore
from catalog.errors import CatalogUnreachable, RewriteRefused
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Unresolved
from catalog.iceberg.lineage import check_lineage
from catalog.iceberg.rewrite_commit import Displaced, Rewritten
from catalog.iceberg.schema_change import SchemaChange
from catalog.ranges.rewrite import Rewrite

LOOKS_AT_ONCE: Final = 16
_NAMED: Final = 5


def put_in_place(
    work: TableWork,
    table: ArchiveTable,
    rewrite: Rewrite,
    known: Mapping[str, TableFile],
    *,
    change: SchemaChange | None = None,
) -> Rewritten | Displaced:
    """Commit a rewrite and record it. `known` are the old files as read.

    Raises RewriteRefused if records are unaccounted for, CatalogUnreachable (retryable) if the outcome is unknown,
    ObjectMissing if a new file is gone, RolledBack for a removal after a rollback.
    """
    topic, registry, catalog, journal = table.topic, work.registry, work.catalog, work.journal
    _check(rewrite, table, known)
    settle_staged(topic, registry, catalog, journal, load=partial(catalog.reload, table), after_rollback=True)
    changed = _changed(rewrite, known, work.manifests)

    def obstacle(loaded: ArchiveTable) -> tuple[str, ...]:
        check_goes_on(rewrite, topic, registry)
        return changed(loaded)

    try:
        registry.rewrites.begin(topic, rewrite)
    except RewriteRefused:
        gone = changed(catalog.reload(table))
        if gone:  # another rewrite took these files, so the registry has other ranges of them by now
            return Displaced(paths=gone)
        raise
    try:
        _look_at_new(rewrite, ObjectStore.of_table(table.iceberg))
    except StorageError:
        registry.rewrites.abandon(topic, rewrite)
        raise
    pass_point(FaultPoint.AFTER_STAGE)
    pass_point(FaultPoint.BEFORE_COMMIT)
    done = catalog.rewrite(table, rewrite, change=change, changed=obstacle)
    match done:
        case Rewritten(snapshot_id=snapshot_id):
            pass_point(FaultPoint.AFTER_COMMIT)
            journal.keep_rewrite(rewrite)
            work.trail(topic).rewrote(rewrite, snapshot_id=snapshot_id)
            registry.rewrites.finish(topic, rewrite)
            keep_values(registry, topic, [new.file for group in rewrite.groups for new in group.files])
            pass_point(FaultPoint.AFTER_CONFIRM)
            if any(_takes_place_of(rewrite, earlier) for earlier in registry.rewrites.unfinished(topic)):
                # Left by a killed run. While it is open, its files, old or new, are not deleted.
                settle_rewrites(work, table)
            return done
        case Displaced():
            # It can't land any more: the table has moved past the snapshots that its attempts were made on.
            undecided = settle_rewrites(work, table)
            if rewrite.commit_id in {earlier.commit_id for earlier in undecided}:
                registry.rewrites.abandon(topic, rewrite)
            return done
        case Unresolved(reason=reason):
            raise CatalogUnreachable(
                "The catalog doesn't say what became of a rewrite; the next run finds out",
                table=topic.table,
                reason=reason,
            )


def _check(rewrite: Rewrite, table: ArchiveTable, known: Mapping[str, TableFile]) -> None:
    if rewrite.removes:  # a rewrite that is begun and not sent would keep erasures open for an hour
        check_lineage(table)
    _check_counts(rewrite, known)


def _check_counts(rewrite: Rewrite, known: Mapping[str, TableFile]) -> None:
    """Raise RewriteRefused if row counts show that records would be lost."""
    for group in rewrite.groups:
        old = sum(known[path].rows for path in group.paths)
        new = sum(file.file.rows for file in group.files)
        left_out = sum(span.gone for span in group.all_spans)
        if group.recorded:  # engines may have removed rows: the registry alone can hold the counts against each other
            left_out = max(0, old - new)
        if not group.is_plain and old != new + left_out:
            raise RewriteRefused(
                "the new files don't account for all records of the old ones; nothing was changed. Run it again, and"
                " report it if that doesn't help",
                command=rewrite.reason,
                old_rows=old,
                new_rows=new,
                left_out=left_out,
                offsets=", ".join(f"{span.partition}: {span.span}" for span in group.all_spans[:_NAMED]),
                files=list(group.paths[:_NAMED]),
                new_files=list(group.new_paths[:_NAMED]),
            )


def _takes_place_of(done: Rewrite, other: Rewrite) -> bool:
    """Whether a landed rewrite did the work of `other` or took its old files."""
    if other.groups:
        return not {*done.old_paths}.isdisjoint(other.old_paths)
    return not done.first_offsets.keys().isdisjoint(other.first_offsets) or bool(done.erased and other.erased)


def _look_at_new(rewrite: Rewrite, objects: ObjectStore) -> None:
    with ThreadPoolExecutor(LOOKS_AT_ONCE, thread_name_prefix="look") as pool:
        deque(pool.map(objects.size, rewrite.new_paths), maxlen=0)


def _changed(
    rewrite: Rewrite, known: Mapping[str, TableFile], manifests: ManifestReader
) -> Callable[[ArchiveTable], tuple[str, ...]]:
    def changed(table: ArchiveTable) -> tuple[str, ...]:
        files = manifests.files(table.iceberg).named(set(rewrite.old_paths))
        return tuple(path for path in rewrite.old_paths if not _is_same(files.get(path), known[path]))

    return changed


def _is_same(found: TableFile | None, read: TableFile) -> bool:
    return found is not None and _deletes(found) == _deletes(read)


def _deletes(file: TableFile) -> set[tuple[str, object]]:
    # A file may have many deletion vectors: the offset says which one it is.
    deletes = (*file.position_deletes, *file.equality_deletes)
    return {(delete.file_path, vector_place(delete)["content_offset"]) for delete in deletes}
