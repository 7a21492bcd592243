"""Give each batch its `ingest_timestamp` (docs/adr/0082).

Append time or median of records (ms since 1970), capped by the plan's time. Provably wrong times are replaced
by the previous batch's. Deterministic.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from archiver.wire.columns import NO_TIME, BatchIndex, Int64Array

HALF_WINDOW: Final = 50
"""How many batches before and after a batch say whether its time is wild."""

MAX_AHEAD_BYTES: Final = 32 << 20
"""The clock looks ahead at most this many decoded bytes; its caller has to hold them in memory."""

EARLIEST_MS: Final = 0
"""No batch gets a time before 1970: such times come from clocks that were never set."""

NEAR_MS: Final = 3_600_000
"""Times of neighbours that are this near confirm each other."""

_FAR_MS: Final = 400 * 86_400_000
"""A time that is farther from most batches of the window is wild. Pauses of yearly topics are shorter."""

_LEAST: Final = 3
"""How many batches before or after a batch it takes to judge its time."""


def batch_times(batches: BatchIndex, plan_time_ms: int) -> Int64Array:
    times = np.where(batches.append_timestamp != NO_TIME, batches.append_timestamp, batches.median_timestamp)
    return np.clip(np.where(times == NO_TIME, plan_time_ms, times), EARLIEST_MS, plan_time_ms)


class IngestClock:
    """A time is decided with `half_window` (at least 2) batches after it, or `max_ahead_bytes`."""

    __slots__ = ("_decided", "_half_window", "_last_kept", "_max_ahead_bytes", "_sizes", "_times")

    def __init__(self, *, half_window: int = HALF_WINDOW, max_ahead_bytes: int = MAX_AHEAD_BYTES) -> None:
        self._half_window = half_window
        self._max_ahead_bytes = max_ahead_bytes
        self._times = np.empty(0, np.int64)
        self._sizes = np.empty(0, np.int64)
        self._decided = 0
        self._last_kept: int | None = None

    @property
    def undecided(self) -> int:
        return len(self._times) - self._decided

    def push(self, times: Int64Array, sizes: Int64Array) -> Int64Array:
        """Return newly decided times. `sizes` are decoded."""
        self._times = np.concatenate([self._times, times])
        self._sizes = np.concatenate([self._sizes, sizes])
        pushed = len(self._times)
        ends = np.cumsum(self._sizes)
        enough = np.searchsorted(ends, ends[-1] - self._max_ahead_bytes, side="left") if pushed else 0
        decided = max(self._decided, pushed - self._half_window, int(enough))
        return self._decide(min(decided, pushed), ends)

    def finish(self) -> Int64Array:
        return self._decide(len(self._times), np.cumsum(self._sizes))

    def _decide(self, until: int, ends: Int64Array) -> Int64Array:
        centres = np.arange(self._decided, until)
        ahead = np.searchsorted(ends, ends[centres] + self._max_ahead_bytes, side="right") - 1 - centres
        last = np.minimum(centres + np.minimum(ahead, self._half_window), len(self._times) - 1)
        decided = self._times[centres]
        confirmed = _confirmed(self._times, centres, last)
        for at in np.flatnonzero(~confirmed).tolist():
            centre = int(centres[at])
            first = max(centre - self._half_window, 0)
            before, after = self._times[first:centre], self._times[centre + 1 : int(last[at]) + 1]
            if is_wild(int(decided[at]), before, after):
                decided[at] = self._replacement(decided[:at], confirmed[:at], before, after)
                confirmed[at] = False
            else:
                confirmed[at] = True
        kept = np.flatnonzero(confirmed)
        if len(kept):
            self._last_kept = int(decided[kept[-1]])
        self._forget(until)
        return decided

    def _replacement(
        self, decided: Int64Array, kept: np.typing.NDArray[np.bool_], before: Int64Array, after: Int64Array
    ) -> int:
        places = np.flatnonzero(kept)
        if len(places):
            return int(decided[places[-1]])
        return _lower_median(np.concatenate([before, after])) if self._last_kept is None else self._last_kept

    def _forget(self, decided: int) -> None:
        passed = max(decided - self._half_window, 0)
        self._times = self._times[passed:]
        self._sizes = self._sizes[passed:]
        self._decided = decided - passed


def _confirmed(times: Int64Array, centres: Int64Array, last: Int64Array) -> np.typing.NDArray[np.bool_]:
    if not len(centres):
        return np.zeros(0, np.bool_)
    near = np.abs(np.diff(times)) <= NEAR_MS
    near_before = np.concatenate([[True], near])  # the first batch of a range has no batch before it
    near_after = np.concatenate([near, [True]])
    has_before, has_after = centres > 0, last > centres
    after = near_after[centres] | ~has_after
    before_that = near_before[np.maximum(centres - 1, 0)]
    after_that = near_after[np.minimum(centres + 1, len(times) - 1)] | (last <= centres + 1)
    both = near_before[centres] & after
    by_before = has_before & near_before[centres] & before_that
    by_after = has_after & near_after[centres] & after_that
    return np.asarray(both | by_before | by_after, np.bool_)


def is_wild(time: int, before: Int64Array, after: Int64Array) -> bool:
    """Whether a time is provably wrong.

    It contradicts most batches before or after it, while the later batches continue at the earlier level; or it
    is over 400 days from most batches, which agree.
    """
    around = np.concatenate([before, after])
    if len(around) >= _LEAST and _most(np.abs(around - time) > _FAR_MS):
        return _most(np.abs(around - _lower_median(around)) <= _FAR_MS)
    least, most = sorted((len(before), len(after)))
    if least < _LEAST or _LEAST * least < most:
        return False
    contradicts = _most(before > time + NEAR_MS) or _most(after < time - NEAR_MS)
    return contradicts and _lower_median(after) >= _lower_median(before) - NEAR_MS


def _most(flags: np.typing.NDArray[np.bool_]) -> bool:
    return 2 * int(np.count_nonzero(flags)) > len(flags)


def _lower_median(times: Int64Array) -> int:
    middle = (len(times) - 1) // 2
    return int(np.partition(times, middle)[middle])
