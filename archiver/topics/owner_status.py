"""Conflicting settings of a table's owner, and erasures that they keep open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.iceberg import owner_settings
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.deletion_gate import GC_ENABLED, is_shared
from catalog.iceberg.expiry import SnapshotRetention
from catalog.registry.erased_offsets import CONDITION, SEARCHED_MS, WAITS_FOR


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenErasure:
    """Table properties (`settings`) keep it open, with these `snapshots`.

    `is_searched` if all of its records were found.
    """

    id: str
    is_searched: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    snapshots: tuple[int, ...] = ()


def open_erasures(erasures: Mapping[str, Mapping[str, Any]], table: ArchiveTable | None) -> tuple[OpenErasure, ...]:
    return tuple(_opened(erasure, value, table) for erasure, value in erasures.items())


def owner_remarks(table: ArchiveTable | None, snapshot_retention: float) -> tuple[str, ...]:
    return () if table is None else owner_settings.owner_remarks(table, SnapshotRetention(seconds=snapshot_retention))


def _opened(erasure_id: str, value: Mapping[str, Any], table: ArchiveTable | None) -> OpenErasure:
    is_searched = SEARCHED_MS in value or CONDITION not in value
    if table is not None and is_shared(table.properties):
        settings = {GC_ENABLED: table.properties[GC_ENABLED]}
        return OpenErasure(id=erasure_id, is_searched=is_searched, settings=settings)
    waits_for = value.get(WAITS_FOR) or {}
    return OpenErasure(
        id=erasure_id,
        is_searched=is_searched,
        settings=waits_for.get("settings", {}),
        snapshots=tuple(waits_for.get("snapshots", ())),
    )
