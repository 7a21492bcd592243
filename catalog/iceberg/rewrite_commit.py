"""Commit a rewrite: replace data files in one snapshot, once, asserting its base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pyiceberg.manifest import DataFile, DataFileContent

from catalog.digests import DIGEST_ALGORITHM, add_digests
from catalog.iceberg import properties as keys
from catalog.iceberg.append import Attempt, attempt_of, data_file, evolve, head_text
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.commit import Backoff, LandedCommit, Load, Send, Unresolved, commit_once
from catalog.iceberg.light_transaction import LightTransaction
from catalog.iceberg.lineage import check_lineage
from catalog.iceberg.manifest_lists import entries_of, manifests_of
from catalog.iceberg.offsets import encode_first_offsets
from catalog.iceberg.producers import overwrite
from catalog.iceberg.schema_change import SchemaChange
from catalog.model import DataFileInfo
from catalog.ranges.rewrite import Rewrite


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    commit_id: str
    snapshot_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Displaced:
    """Nothing was committed: `paths` left the table or lost rows, or only first offsets had moved."""

    paths: tuple[str, ...]


RewriteOutcome: TypeAlias = Rewritten | Displaced | Unresolved
Changed: TypeAlias = Callable[[ArchiveTable], tuple[str, ...]]
"""The old files that a table no longer has as they were read."""


def commit_rewrite(
    *,
    load: Load,
    send: Send,
    rewrite: Rewrite,
    change: SchemaChange | None,
    changed: Changed,
    backoff: Backoff,
) -> RewriteOutcome:
    """Raises like `catalog.iceberg.commit.commit`."""

    def displaced(table: ArchiveTable) -> Displaced | None:
        paths = changed(table)
        moves_only = not rewrite.groups and not rewrite.erased and bool(rewrite.first_offsets)
        is_done = moves_only and rewrite.is_moved_in(table.first_offsets)
        return Displaced(paths=paths) if paths or is_done else None

    done = commit_once(
        load=load,
        send=send,
        obstacle=displaced,
        attempt=partial(prepare_rewrite, rewrite=rewrite, change=change),
        commit_id=rewrite.commit_id,
        backoff=backoff,
    )
    if not isinstance(done, LandedCommit):
        return done
    return Rewritten(commit_id=rewrite.commit_id, snapshot_id=done.snapshot_id)


def prepare_rewrite(table: ArchiveTable, *, rewrite: Rewrite, change: SchemaChange | None) -> Attempt:
    """A removal raises RolledBack after a rollback: it must remove the records that the registry means."""
    if rewrite.removes:
        check_lineage(table)
    transaction = LightTransaction(table.iceberg)
    properties = evolve(transaction, table, change)
    if rewrite.first_offsets:
        before = table.first_offsets
        moved = {item: max(offset, before.get(item, 0)) for item, offset in rewrite.first_offsets.items()}
        properties[keys.FIRST_OFFSETS] = encode_first_offsets({**before, **moved})
    old = data_files(table, set(rewrite.old_paths))
    summary = {keys.COMMIT_ID: rewrite.commit_id, keys.REWRITE: rewrite.reason, **_told(rewrite)}
    producer = overwrite(transaction, summary, table.lists)
    if rewrite.removes:
        # The head before has the records that go. Its snapshot would never expire in a topic without new records.
        properties[keys.HEAD] = head_text(table, producer)
    for group in rewrite.groups:
        replaced = [old[path] for path in group.paths]
        for item in replaced:
            producer.delete_data_file(item)
        for file in group.files:
            entry = _place(file.file, replaced)
            producer.append_data_file(
                data_file(table, file.file, instead_of=entry, is_staged=False, is_sorted=file.is_sorted)
            )
    return attempt_of(table, transaction, producer, properties)


def data_files(table: ArchiveTable, paths: set[str]) -> dict[str, DataFile]:
    snapshot = table.iceberg.current_snapshot()
    return {
        entry.data_file.file_path: entry.data_file
        for manifest in (manifests_of(table.io, table.iceberg.metadata, snapshot) if snapshot else ())
        for entry in entries_of(table.io, manifest)
        if entry.data_file.content == DataFileContent.DATA and entry.data_file.file_path in paths
    }


def _place(file: DataFileInfo, old: Sequence[DataFile]) -> DataFile | None:
    places = {
        (replaced.spec_id, tuple(replaced.partition[at] for at in range(len(replaced.partition)))) for replaced in old
    }
    return old[0] if file.partition.by is None and len(places) == 1 else None


def _told(rewrite: Rewrite) -> dict[str, str]:
    spans = [span for group in rewrite.groups for span in group.all_spans]
    left_out = {
        keys.ERASED_ROWS: sum(span.erased for span in spans),
        keys.RETIRED_ROWS: sum(span.retired for span in spans),
    }
    summary = {key: str(rows) for key, rows in left_out.items() if rows}
    digest = add_digests(file.digest for file in rewrite.new_files)
    if digest is None:
        return summary
    return {**summary, keys.REWRITTEN_DIGEST: digest, keys.DIGEST_ALGORITHM: DIGEST_ALGORITHM}
