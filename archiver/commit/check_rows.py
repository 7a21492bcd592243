"""Check that a table has the expected rows (ADR 0026).

While an earlier result holds, no module that reads tables is imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyiceberg.table.snapshots import Snapshot

from archiver.commit.known_rows import later_than, sequence_of
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import is_ours
from catalog.model import TopicRow
from catalog.ranges.holes import Checked
from catalog.registry import Registry

if TYPE_CHECKING:
    from archiver.storage.formats import SegmentFormats

RENEWED: Final = 20
"""After this many snapshots the result is recorded again, before its snapshot expires. A result from before the first
snapshot is recorded again with the first snapshot.
"""
RENEWED_MS: Final = 3_600_000
"""The same after this long, as snapshots expire by their age."""


def check_rows(
    topic: TopicRow,
    table: ArchiveTable,
    registry: Registry,
    load: Callable[[], ArchiveTable | None],
    *,
    is_back: bool = False,
    formats: SegmentFormats | None = None,
) -> Checked:
    """Return missing rows and known altered ranges, without reading data files.

    `is_back` if the table was rolled back. Raises ReplayError, StorageError, RegistryError and TableError.
    """
    earlier = None if is_back else registry.rows.checked(topic)
    later = None if earlier is None else later_than(earlier, table)
    if earlier is not None and later is not None and all(map(is_ours, later)):
        if len(later) >= RENEWED or _is_old(later) or (later and earlier.snapshot_id is None):
            registry.rows.note_checked(
                topic, replace(earlier, snapshot_id=table.snapshot_id, sequence=sequence_of(table))
            )
        return earlier
    from archiver.commit.find_holes import look_again

    return look_again(topic, table, registry, load, known=earlier, is_back=is_back, formats=formats)


def renew_check(
    topic: TopicRow, table: ArchiveTable, registry: Registry, load: Callable[[], ArchiveTable | None]
) -> None:
    """Call it before earlier snapshots expire. Raises like `check_rows`."""
    result = check_rows(topic, table, registry, load)
    if result.snapshot_id != table.snapshot_id and later_than(result, table) is not None:
        registry.rows.note_checked(topic, replace(result, snapshot_id=table.snapshot_id, sequence=sequence_of(table)))


def _is_old(later: Sequence[Snapshot]) -> bool:
    return bool(later) and time.time() * 1000 - later[-1].timestamp_ms >= RENEWED_MS
