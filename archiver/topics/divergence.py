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
    """After many differences, offsets from `until` on weren't compared."""

    only_archived: list[int] = field(default_factory=list)
    only_in_log: list[int] = field(default_factory=list)
    other: list[int] = field(default_factory=list)
    until: int | None = None

    def is_enough(self) -> bool:
        return len(self.only_archived) + len(self.only_in_log) + len(self.other) >= ENOUGH

    @property
    def first(self) -> int | None:
        return min((each[0] for each in (self.only_archived, self.only_in_log, self.other) if each), default=None)

    @property
    def text(self) -> str:
        kinds = (
            ("gone from the log", self.only_archived),
            ("in the log and not archived", self.only_in_log),
            ("other records than archived", self.other),
        )
        found = [f"{name}: {spans(offsets)}" for name, offsets in kinds if offsets]
        return "; ".join(found if self.until is None else [*found, f"not compared from {self.until} on"])


def differences(
    log: Iterable[DecodedBatches], archived: ArchivedRange, *, partition: int, start_offset: int, end_offset: int
) -> Differences:
    found = Differences()
    at = start_offset
    for piece in log:
        for start, end in _parts(at, min(piece.next_offset, end_offset)):
            _compare(piece.records, archived(start, end), found, partition=partition, start=start, end=end)
            at = end
            if found.is_enough():
                break
        if found.is_enough():
            break
    for start, end in _parts(at, end_offset):
        if found.is_enough():
            found.until = start
            break
        found.only_archived += _offsets(archived(start, end)).tolist()
    return found


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
    offsets = _offsets(log)
    log = log.slice(*_part(offsets, start, end))
    here, there = _offsets(log), _offsets(archived)
    found.only_in_log += here[~np.isin(here, there)].tolist()
    found.only_archived += there[~np.isin(there, here)].tolist()
    both_here, both_there = np.flatnonzero(np.isin(here, there)), np.flatnonzero(np.isin(there, here))
    if len(both_here) != len(both_there):  # an offset that is archived twice
        found.other += there[both_there].tolist()
        return
    found.other += _differing(log.take(pa.array(both_here)), archived.take(pa.array(both_there)), partition)


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
