"""How far a table is ahead of a registry that was restored from an older backup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from catalog.errors import RegistryBehind
from catalog.iceberg.archive_table import ArchiveTable
from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class LackingOffsets:
    """The end of a partition's ranges in the registry (None without ranges) and in the table."""

    registry_end: int | None
    table_end: int

    @property
    def start(self) -> int:
        """The first offset that the registry may lack."""
        return self.registry_end or 0


Lacking: TypeAlias = Mapping[int, LackingOffsets]
"""By partition."""


def lacking_offsets(table: ArchiveTable, registry: Registry) -> Lacking:
    """Return the partitions of which the table has more than the registry has accepted.

    Load the table before this call: ranges are accepted before they are committed.
    """
    ends = registry.files.accepted_ends(table.topic)
    lacking: dict[int, LackingOffsets] = {}
    for partition, reached in sorted(table.offsets.items()):
        end = ends[partition].next_offset if partition in ends else None
        if end is None or end < reached.next_offset:
            lacking[partition] = LackingOffsets(registry_end=end, table_end=reached.next_offset)
    return lacking


def registry_behind(table: ArchiveTable, lacking: Lacking, *, advice: str) -> RegistryBehind:
    """Make the error for a registry that lacks ranges. It names the first partition, and their number."""
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
