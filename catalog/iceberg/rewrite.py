"""Rewritten data files into a table: old ones out and new ones in, in one snapshot, once.

A rewrite changes no offsets and asserts the snapshot it was made on, so it never undoes what others committed
meanwhile; appends in between only make it prepare anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeAlias

from pyiceberg.manifest import DataFile, DataFileContent

from catalog.digests import DIGEST_ALGORITHM, add_digests
from catalog.iceberg import properties as keys
from catalog.iceberg.append import Attempt, attempt_of, data_file, evolve
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.columns import SchemaChange
from catalog.iceberg.commit import Backoff, LandedCommit, Load, Send, Unresolved, commit_once
from catalog.iceberg.light_transaction import LightTransaction
from catalog.iceberg.producers import overwrite
from catalog.model import DataFileInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The data file at `path`, and the one that takes its place; `is_sorted` says that its rows are in our order."""

    path: str
    file: DataFileInfo
    is_sorted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """One commit's replacements, all of one topic; `reason` is the command's name, `schema_version` its rows'."""

    commit_id: str
    reason: str
    schema_version: int
    replacements: tuple[Replacement, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "commit_id": self.commit_id,
            "reason": self.reason,
            "schema_version": self.schema_version,
            "replacements": [
                {"path": one.path, "file": one.file.to_json(), "is_sorted": one.is_sorted} for one in self.replacements
            ],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        replacements = tuple(
            Replacement(path=one["path"], file=DataFileInfo.from_json(one["file"]), is_sorted=one["is_sorted"])
            for one in value["replacements"]
        )
        return cls(**{**value, "replacements": replacements})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The replacements are in the table."""

    commit_id: str
    snapshot_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Displaced:
    """Nothing was committed: these files are gone from the table, or rows of them were deleted meanwhile."""

    paths: tuple[str, ...]


RewriteOutcome: TypeAlias = Rewritten | Displaced | Unresolved
Changed: TypeAlias = Callable[[ArchiveTable], tuple[str, ...]]
"""Which of the files to replace a table doesn't have any more as they were read."""


def commit_rewrite(
    *,
    load: Load,
    send: Send,
    rewrite: Rewrite,
    change: SchemaChange | None,
    changed: Changed,
    backoff: Backoff,
) -> RewriteOutcome:
    """Replace the files in one snapshot, once; raises as `catalog.iceberg.commit.commit` does."""

    def displaced(table: ArchiveTable) -> Displaced | None:
        paths = changed(table)
        return Displaced(paths=paths) if paths else None

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
    """Write the manifests of a snapshot without the old files and with the new ones; the schema `change` goes along."""
    transaction = LightTransaction(table.iceberg)
    properties = evolve(transaction, table, change)
    old = data_files(table, {one.path for one in rewrite.replacements})
    summary = {keys.COMMIT_ID: rewrite.commit_id, keys.REWRITE: rewrite.reason, **_digest(rewrite.replacements)}
    producer = overwrite(transaction, summary)
    for one in rewrite.replacements:
        there = old[one.path]
        producer.delete_data_file(there)
        producer.append_data_file(data_file(table, one.file, instead_of=there, is_sorted=one.is_sorted))
    return attempt_of(table, transaction, producer, properties)


def data_files(table: ArchiveTable, paths: set[str]) -> dict[str, DataFile]:
    """The entries of these data files in the current snapshot, by path; those that are gone are left out."""
    snapshot = table.iceberg.current_snapshot()
    return {
        entry.data_file.file_path: entry.data_file
        for manifest in (snapshot.manifests(table.io) if snapshot else ())
        for entry in manifest.fetch_manifest_entry(table.io)
        if entry.data_file.content == DataFileContent.DATA and entry.data_file.file_path in paths
    }


def _digest(replacements: Sequence[Replacement]) -> dict[str, str]:
    digest = add_digests(one.file.digest for one in replacements)
    return {} if digest is None else {keys.REWRITTEN_DIGEST: digest, keys.DIGEST_ALGORITHM: DIGEST_ALGORITHM}
