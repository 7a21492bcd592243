"""Compare a log and its archive over offsets of another epoch.

Markers and emptied batches have epochs too, so only records decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from archiver.wire.columns import DecodedBatches, Int64Array
from archiver.wire.record_digest import RecordDigest

AT_ONCE: Final = 1 << 16
"""So many offsets of an archive are read at a time: where a leader lost whole epochs, all of it may be in doubt."""
ENOUGH: Final = 100_000
"""Differences that are looked for: the partition stops in any case."""
_NAMED: Final = 5


class ArchivedRange(Protocol):
    """Records by offset, with the columns of a replay."""

    def __call__(self, start_offset: int, end_offset: int) -> pa.RecordBatch: ...


@dataclass(slots=True)
class Differences:
    """After many differences, offsets from `until` on weren't compared.

    `shared` counts offsets that both have. A row of each offset that is archived `twice` is the log's record.
    """

    only_archived: list[int] = field(default_factory=list)
    only_in_log: list[int] = field(default_factory=list)
    other: list[int] = field(default_factory=list)
    twice: list[int] = field(default_factory=list)
    shared: int = 0
    until: int | None = None

    def is_enough(self) -> bool:
        return len(self.only_archived) + len(self.only_in_log) + len(self.other) >= ENOUGH

    @property
    def first(self) -> int | None:
        return min(
            (offsets[0] for offsets in (self.only_archived, self.only_in_log, self.other) if offsets), default=None
        )

    @property
    def text(self) -> str:
        kinds = (
            ("gone from the log", self.only_archived),
            ("in the log and not archived", self.only_in_log),
            ("other records than archived", self.other),
            ("archived more than once", self.twice),
        )
        parts = [f"{name}: {spans(offsets)}" for name, offsets in kinds if offsets]
        return "; ".join(parts if self.until is None else [*parts, f"not compared from {self.until} on"])


def differences(
    log: Iterable[DecodedBatches], archived: ArchivedRange, *, partition: int, start_offset: int, end_offset: int
) -> Differences:
    result = Differences()
    at = start_offset
    for piece in log:
        for start, end in _parts(at, min(piece.next_offset, end_offset)):
            _compare(piece.records, archived(start, end), result, partition=partition, start=start, end=end)
            at = end
            if result.is_enough():
                break
        if result.is_enough():
            break
    for start, end in _parts(at, end_offset):
        if result.is_enough():
            result.until = start
            break
        result.only_archived += _offsets(archived(start, end)).tolist()
    return result


def spans(offsets: list[int]) -> str:
    """The first few of ascending offsets."""
    places = np.unique(np.asarray(offsets, np.int64))
    breaks = np.flatnonzero(np.diff(places) > 1) + 1
    parts = np.split(places, breaks)
    named = ", ".join(f"[{part[0]}, {part[-1] + 1})" for part in parts[:_NAMED])
    return named if len(parts) <= _NAMED else f"{named} and {len(parts) - _NAMED} more"


def _parts(start: int, end: int) -> Iterator[tuple[int, int]]:
    return ((at, min(at + AT_ONCE, end)) for at in range(start, end, AT_ONCE))


def _compare(
    log: pa.RecordBatch, archived: pa.RecordBatch, found: Differences, *, partition: int, start: int, end: int
) -> None:
    positions = _offsets(log)
    log = log.slice(*_part(positions, start, end))
    in_log, in_archive = _offsets(log), _offsets(archived)
    found.only_in_log += in_log[~np.isin(in_log, in_archive)].tolist()
    found.only_archived += in_archive[~np.isin(in_archive, in_log)].tolist()
    rows = np.flatnonzero(np.isin(in_archive, in_log))
    records = np.searchsorted(in_log, in_archive[rows])
    differing = _differing(log.take(pa.array(records)), archived.take(pa.array(rows)), partition)
    shared, counts = np.unique(in_archive[rows], return_counts=True)
    offsets, wrong = np.unique(np.asarray(differing, np.int64), return_counts=True)
    other = offsets[wrong == counts[np.searchsorted(shared, offsets)]]
    found.shared += len(shared)
    found.other += other.tolist()
    found.twice += np.setdiff1d(shared[counts > 1], other).tolist()


def _differing(log: pa.RecordBatch, archived: pa.RecordBatch, partition: int) -> list[int]:
    if RecordDigest.of_fetched(log, partition=partition) == RecordDigest.of_seen(archived):
        return []
    if log.num_rows == 1:
        return [log.column("offset")[0].as_py()]
    middle = log.num_rows // 2
    first = _differing(log.slice(0, middle), archived.slice(0, middle), partition)
    return first + _differing(log.slice(middle), archived.slice(middle), partition)


def _offsets(records: pa.RecordBatch) -> Int64Array:
    offsets: Int64Array = records.column("offset").to_numpy(zero_copy_only=False)
    return offsets


def _part(offsets: Int64Array, start: int, end: int) -> tuple[int, int]:
    first, last = np.searchsorted(offsets, (start, end))
    return int(first), int(last - first)
