"""How far a table is ahead of the registry, after the registry's database was restored from an older backup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from catalog.errors import RegistryBehind
from catalog.iceberg.archive_table import ArchiveTable
from catalog.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class LackingOffsets:
    """How far the registry's ranges of a partition reach, and how far the table does. None if it has no range."""

    registry_end: int | None
    table_end: int

    @property
    def start(self) -> int:
        """The first offset that the registry may lack."""
        return self.registry_end or 0


Lacking: TypeAlias = Mapping[int, LackingOffsets]
"""By partition."""


def lacking_offsets(table: ArchiveTable, registry: Registry) -> Lacking:
    """The partitions of which the table has more than the registry has accepted.

    A range is accepted before it is committed, so a table that was loaded before this call has no more than the
    registry.
    """
    ends = registry.files.accepted_ends(table.topic)
    found: dict[int, LackingOffsets] = {}
    for partition, reached in sorted(table.offsets.items()):
        end = ends[partition].next_offset if partition in ends else None
        if end is None or end < reached.next_offset:
            found[partition] = LackingOffsets(registry_end=end, table_end=reached.next_offset)
    return found


def registry_behind(table: ArchiveTable, lacking: Lacking, *, advice: str) -> RegistryBehind:
    """The error of a registry that lacks ranges. It names the first partition, and how many lack some."""
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
