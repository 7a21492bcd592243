"""Finds out whether a table is ahead of a restored registry.

Without later rewrites, their removed rows look deleted by other engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from catalog.errors import RegistryBehind
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import history, summary_of
from catalog.registry import Registry

NEWER_STATE: Final = (
    "Restore a newer backup of the registry's database, or run `archiver registry rebuild` into an empty database"
    " beside it, with the journal. Keep this one: only this one has the offsets of groups and the users of"
    " `archiver serve kafka`"
)
"""How the registry learns of the rewrites since its backup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LackingOffsets:
    registry_end: int | None
    table_end: int

    @property
    def start(self) -> int:
        return self.registry_end or 0


Lacking: TypeAlias = Mapping[int, LackingOffsets]
"""By partition."""


def lacking_offsets(table: ArchiveTable, registry: Registry) -> Lacking:
    """Return partitions of which the table has more than the registry accepted.

    Load the table first: ranges are accepted before their commit.
    """
    ends = registry.files.accepted_ends(table.topic)
    lacking: dict[int, LackingOffsets] = {}
    for partition, reached in sorted(table.offsets.items()):
        end = ends[partition].next_offset if partition in ends else None
        if end is None or end < reached.next_offset:
            lacking[partition] = LackingOffsets(registry_end=end, table_end=reached.next_offset)
    return lacking


def registry_behind(table: ArchiveTable, lacking: Lacking, *, advice: str) -> RegistryBehind:
    partition, offsets = next(iter(lacking.items()))
    return RegistryBehind(
        f"the table has records that the registry doesn't know: its database was restored from an older backup. "
        f"{advice}",
        topic=table.topic.topic,
        table=table.topic.table,
        partition=partition,
        registry_end=offsets.registry_end,
        table_end=offsets.table_end,
        partitions=len(lacking),
    )


def lacking_rewrites(table: ArchiveTable, registry: Registry) -> tuple[str, ...]:
    """Empty if the registry has no commit: its age is unknown."""
    newest = registry.files.newest_commit(table.topic)
    if newest is None:
        return ()
    summaries = map(summary_of, history(table.iceberg.metadata))
    commands = {
        summary[keys.REWRITE]
        for summary in summaries
        if keys.REWRITE in summary and summary.get(keys.COMMIT_ID, "") > newest
    }
    return tuple(sorted(commands))


def rewritten_since(table: ArchiveTable, commands: tuple[str, ...], *, missing: str) -> RegistryBehind:
    """Later rewrites may have removed expected rows on purpose."""
    return RegistryBehind(
        "the table lacks rows that the registry expects, and the archiver has rewritten it since the last commit that"
        " the registry knows: its database was restored from an older backup. The rows may have been erased or retired"
        f" since. {NEWER_STATE}",
        topic=table.topic.topic,
        table=table.topic.table,
        missing=missing,
        rewritten_by=list(commands),
    )
