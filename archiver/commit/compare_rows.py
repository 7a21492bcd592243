"""Compare rows that other engines may have written with archived digests (ADR 0040).

The registry keeps the remaining work after each window.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from archiver.archive.mappings import LedgerMappings
from archiver.commit.find_altered import archived_ends, to_compare
from archiver.commit.table_rows import TableRows
from archiver.storage.formats import FORMATS, SegmentFormats
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.lineage import is_ours, since
from catalog.model import TopicRow
from catalog.offset_range import OffsetRange
from catalog.ranges.holes import AlteredRange, Checked, ExpectedRange
from catalog.ranges.spans import Cover
from catalog.registry import Registry

ROUND_ROWS: Final = 4_000_000
"""Rows that one run of the job compares, for all of its topics together."""
ROUND_SECONDS: Final = 30.0
"""How long it compares at most, plus one window."""
WINDOW_ROWS: Final = 250_000
WINDOW_BYTES: Final = 256 * 1024 * 1024
"""The size of a window in files, by the table's average row. A window has at least one range."""


@dataclass(slots=True, kw_only=True)
class Allowance:
    rows: int = ROUND_ROWS
    seconds: float = ROUND_SECONDS
    window_rows: int = WINDOW_ROWS
    stop: threading.Event = field(default_factory=threading.Event)
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    @property
    def is_used_up(self) -> bool:
        return self.rows <= 0 or self.stop.is_set() or time.monotonic() >= self._until


def compare_rows(
    topic: TopicRow,
    registry: Registry,
    load: Callable[[], ArchiveTable | None],
    allowance: Allowance,
    *,
    formats: SegmentFormats = FORMATS,
) -> Checked | None:
    """Compare at least one window; return the updated check, if any.

    Raises StorageError, RegistryError and TableError.
    """
    if allowance.is_used_up:
        return None
    earlier = registry.rows.checked(topic)
    if earlier is None or not _is_due(earlier, topic, registry):
        return None
    expected = registry.rows.expected_ranges(topic)  # before the table: so it has all of them
    table = load()
    if table is None:
        return None
    ready, waiting = to_compare(expected, earlier.uncompared, earlier.holes)
    kept = (*map(OffsetRange.of_range, waiting), *Cover(earlier.uncompared).from_ends(archived_ends(expected)))
    later = None if earlier.snapshot_id is None else since(table.iceberg.metadata, earlier.snapshot_id)
    is_same = later is not None and all(map(is_ours, later))
    comparison = _Comparison(
        TableRows(table, formats, LedgerMappings(registry, topic)),
        earlier,
        kept=kept,
        left=ready,
        keeps_short=not is_same,
    )
    for window in comparison.windows(allowance):
        if window != earlier and not registry.rows.replace_checked(topic, earlier, window):
            return registry.rows.checked(topic)  # somebody else checked meanwhile: the next run goes on
        earlier = window
    return earlier


def _is_due(known: Checked, topic: TopicRow, registry: Registry) -> bool:
    if not known.uncompared:
        return False
    ends = {partition: reached.next_offset for partition, reached in registry.files.committed_ends(topic).items()}
    return any(offsets.first < ends.get(offsets.partition, 0) for offsets in known.uncompared)


class _Comparison:
    """`kept` spans wait, `left` are compared now.

    `keeps_short` leaves ranges with too few rows to the next check.
    """

    def __init__(
        self,
        live: TableRows,
        known: Checked,
        *,
        kept: Sequence[OffsetRange],
        left: Sequence[ExpectedRange],
        keeps_short: bool,
    ) -> None:
        self._live = live
        self._known = known
        self._kept = list(kept)
        self._left = left
        self._keeps_short = keeps_short

    def windows(self, allowance: Allowance) -> Iterator[Checked]:
        done = 0
        most = max(1, min(allowance.window_rows, int(WINDOW_BYTES / self._live.bytes_per_row)))
        yield self._checked(done)
        while done < len(self._left) and not (allowance.stop.is_set() or (done and allowance.is_used_up)):
            window = _window(self._left[done:], most)
            self._judge(window)
            done += len(window)
            allowance.rows -= sum(expected.rows for expected in window)
            yield self._checked(done)

    def _judge(self, window: Sequence[ExpectedRange]) -> None:
        altered = []
        judged = []
        for expected, digest in zip(window, self._live.digests(window), strict=True):
            if digest != expected.digest and self._keeps_short and self._live.count(expected) < expected.rows:
                self._kept.append(OffsetRange.of_range(expected))
                continue
            judged.append(OffsetRange.of_range(expected))
            if digest != expected.digest:
                altered.append(altered_range(expected))
        cover = Cover(judged)
        before = [earlier for earlier in self._known.altered if not cover.touches(OffsetRange.of_range(earlier))]
        merged = sorted((*before, *altered), key=lambda range_: (range_.partition, range_.start_offset))
        self._known = replace(self._known, altered=tuple(merged))

    def _checked(self, done: int) -> Checked:
        left = self._left[done:]
        return replace(
            self._known,
            uncompared=Cover((*self._kept, *map(OffsetRange.of_range, left))).ranges,
            uncompared_rows=sum(expected.rows for expected in left),
        )


def altered_range(one: ExpectedRange) -> AlteredRange:
    return AlteredRange(
        range_id=one.id,
        partition=one.partition,
        start_offset=one.start_offset,
        end_offset=one.end_offset,
        rows=one.rows,
    )


def _window(ranges: Sequence[ExpectedRange], most: int) -> list[ExpectedRange]:
    window = [ranges[0]]
    rows = ranges[0].rows
    for expected in ranges[1:]:
        rows += expected.rows
        if expected.partition != ranges[0].partition or rows > most:
            break
        window.append(expected)
    return window
