"""Decides when a range ends: on request, at a new time partition, or if times fall.

`ingest_timestamp` is the running maximum, at most TOLERANCE_MS above a batch's time (docs/adr/0082).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from archiver.files.records import Int64Array
from catalog.partitioning import TRANSFORMS, Partitioning

TOLERANCE_MS: Final = 600_000
"""How far times may fall within a range."""

_BATCHES_PER_FALL: Final = 4096
"""After this many batches one more range may end because times fall."""

_MOST_CREDIT: Final = 16 * _BATCHES_PER_FALL
"""So 16 ranges may end one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRun:
    """Batches up to `end`, exclusive. `new_partition`: the open file ends before them."""

    first: int
    end: int
    times: Int64Array
    partition_value: int
    new_partition: bool


class Rotation:
    __slots__ = ("_credit", "_latest", "_open", "_unit")

    def __init__(self, *, partition_by: str | None) -> None:
        self._unit = partition_by
        self._open: int | None = None
        self._latest = 0
        self._credit = _MOST_CREDIT

    def runs(self, times: Int64Array) -> Iterator[BatchRun]:
        """`end` may be called after each run."""
        first = 0
        while first < len(times):
            fell = self._open is not None and int(times[first]) < self._latest - TOLERANCE_MS and self._spend()
            floor = times[first] if self._open is None or fell else self._latest
            latest = np.maximum(np.maximum.accumulate(times[first:]), floor)
            values = partition_values(latest, self._unit) if self._unit else np.zeros(len(latest), np.int64)
            changed = self._open is not None and (fell or int(values[0]) != self._open)
            self._open = int(values[0])
            length = int(np.searchsorted(values, self._open, side="right"))
            falls = np.flatnonzero(times[first : first + length] < latest[:length] - TOLERANCE_MS)
            if len(falls) and self._credit >= _BATCHES_PER_FALL:
                length = int(falls[0])
            self._latest = int(latest[length - 1])
            self._credit = min(self._credit + length, _MOST_CREDIT)
            yield BatchRun(
                first=first,
                end=first + length,
                times=latest[:length],
                partition_value=self._open,
                new_partition=changed,
            )
            first += length

    def _spend(self) -> bool:
        if self._credit < _BATCHES_PER_FALL:
            return False
        self._credit -= _BATCHES_PER_FALL
        return True

    def end(self) -> None:
        self._open = None


def partition_values(times: Int64Array, partition_by: str) -> Int64Array:
    """As Iceberg's transforms, since 1970."""
    return times.astype("datetime64[ms]").astype(f"datetime64[{TRANSFORMS[partition_by].unit}]").astype(np.int64)


def partition_folder(location: str, partitioning: Partitioning, time_value: int | None) -> str:
    """Return Iceberg's folder of a time: `…/ingest_day=2026-01-02`, with hours `2026-01-02-15`.

    Paths have no values of columns: catalogs and logs would show them.
    """
    time = partitioning.time
    if time is None or time_value is None:
        return location
    text = str(np.array(time_value, f"datetime64[{TRANSFORMS[time.transform].unit}]"))
    return f"{location}/{time.name}={text.replace('T', '-')}"
