"""Check that a table has the rows that it should have by the registry (ADR 0026).

The result is kept in the registry for as long as it holds. Mostly it does, and then nothing that reads a table is
imported.
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
"""After this many snapshots the result is noted again, before the snapshot that it belongs to expires.

A result from before the first snapshot is noted again with the first one that is seen.
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
    """The rows that the table lacks, by partition and offset, and the ranges that others altered as far as is known.

    What others may have altered since is noted, for `compare_rows`. No data file is read for it.

    `table` was loaded a short time ago; `load` loads it again. `is_back` says that the table was set back: then the
    result of an earlier check says nothing about what came after it. Raises the leaves of StorageError, RegistryError
    and TableError, and ReplayError.
    """
    known = None if is_back else registry.rows.checked(topic)
    later = None if known is None else later_than(known, table)
    if known is not None and later is not None and all(map(is_ours, later)):
        if len(later) >= RENEWED or _is_old(later) or (later and known.snapshot_id is None):
            registry.rows.note_checked(
                topic, replace(known, snapshot_id=table.snapshot_id, sequence=sequence_of(table))
            )
        return known
    from archiver.commit.find_holes import look_again

    return look_again(topic, table, registry, load, known=known, is_back=is_back, formats=formats)


def renew_check(
    topic: TopicRow, table: ArchiveTable, registry: Registry, load: Callable[[], ArchiveTable | None]
) -> None:
    """Check the table, and note the result for its current snapshot: earlier snapshots may expire then.

    Without it, the next check could not see what other engines did since the last one. Raises like `check_rows`.
    """
    found = check_rows(topic, table, registry, load)
    if found.snapshot_id != table.snapshot_id and later_than(found, table) is not None:
        registry.rows.note_checked(topic, replace(found, snapshot_id=table.snapshot_id, sequence=sequence_of(table)))


def _is_old(later: Sequence[Snapshot]) -> bool:
    return bool(later) and time.time() * 1000 - later[-1].timestamp_ms >= RENEWED_MS
