"""Gives each batch its `ingest_timestamp`, which decides the time partition (docs/adr/0004).

A batch's own time is its append time, else the median of its records' times, but never later than the plan's time. The
clock smooths these times: each batch gets the median over the 101 batches around it. So one wrong producer clock
changes nothing, and a backfill doesn't lag. The same batches and the same plan time give the same values, however they
are pushed. All times are ms since 1970.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from archiver.wire.columns import NO_TIME, BatchIndex, Int64Array

HALF_WINDOW: Final = 50
"""How many batches before and after a batch count for its time."""

MAX_AHEAD_BYTES: Final = 32 << 20
"""The clock looks ahead at most this many decoded bytes; its caller has to hold them in memory."""

EARLIEST_MS: Final = 0
"""No batch gets a time before 1970: such times come from clocks that were never set."""

_STRIDE: Final = 4096


def batch_times(batches: BatchIndex, plan_time_ms: int) -> Int64Array:
    """Each batch's own time: its append time, else its records' median, else the plan's; between 1970 and the plan."""
    times = np.where(batches.append_timestamp != NO_TIME, batches.append_timestamp, batches.median_timestamp)
    return np.clip(np.where(times == NO_TIME, plan_time_ms, times), EARLIEST_MS, plan_time_ms)


class IngestClock:
    """Smooths the times of one range's batches. Batches are pushed in order, and their times come out in order.

    A batch's time is decided once `half_window` batches after it are known, or more than `max_ahead_bytes` of them. The
    window has as many batches before it as after it. `finish` decides the remaining times with the batches there are.
    """

    __slots__ = ("_decided", "_half_window", "_max_ahead_bytes", "_sizes", "_times")

    def __init__(self, *, half_window: int = HALF_WINDOW, max_ahead_bytes: int = MAX_AHEAD_BYTES) -> None:
        self._half_window = half_window
        self._max_ahead_bytes = max_ahead_bytes
        self._times = np.empty(0, np.int64)
        self._sizes = np.empty(0, np.int64)
        self._decided = 0

    @property
    def undecided(self) -> int:
        """How many pushed batches have no time yet."""
        return len(self._times) - self._decided

    def push(self, times: Int64Array, sizes: Int64Array) -> Int64Array:
        """Take the own times and decoded sizes of the next batches; return the times that are decided now."""
        self._times = np.concatenate([self._times, times])
        self._sizes = np.concatenate([self._sizes, sizes])
        pushed = len(self._times)
        ends = np.cumsum(self._sizes)
        enough = np.searchsorted(ends, ends[-1] - self._max_ahead_bytes, side="left") if pushed else 0
        decided = max(self._decided, pushed - self._half_window, int(enough))
        return self._decide(min(decided, pushed), ends)

    def finish(self) -> Int64Array:
        """Return the times of the remaining batches: their windows end at the end of the range."""
        return self._decide(len(self._times), np.cumsum(self._sizes))

    def _decide(self, until: int, ends: Int64Array) -> Int64Array:
        centres = np.arange(self._decided, until)
        ahead = np.searchsorted(ends, ends[centres] + self._max_ahead_bytes, side="right") - 1 - centres
        pushed = len(self._times)
        limited = centres + ahead < pushed - 1
        reach = np.where(limited, np.minimum(ahead, self._half_window), self._half_window)
        decided = _medians(self._times, np.maximum(centres - reach, 0), np.minimum(centres + reach, pushed - 1))
        self._forget(until)
        return decided

    def _forget(self, decided: int) -> None:
        passed = max(decided - self._half_window, 0)
        self._times = self._times[passed:]
        self._sizes = self._sizes[passed:]
        self._decided = decided - passed


def _medians(times: Int64Array, first: Int64Array, last: Int64Array) -> Int64Array:
    """The lower median of each window `times[first..last]`, both ends included."""
    if not len(first):
        return np.empty(0, np.int64)
    begin, end = int(first[0]), int(last[-1])
    if bool(np.all(times[begin:end] <= times[begin + 1 : end + 1])):
        return times[first + (last - first) // 2]
    medians = np.empty(len(first), np.int64)
    widths = last - first + 1
    for width in np.unique(widths).tolist():
        rows = np.flatnonzero(widths == width)
        windows = np.lib.stride_tricks.sliding_window_view(times, width)
        middle = (width - 1) // 2
        for start in range(0, len(rows), _STRIDE):
            part = rows[start : start + _STRIDE]
            medians[part] = np.partition(windows[first[part]], middle, axis=1)[:, middle]
    return medians
