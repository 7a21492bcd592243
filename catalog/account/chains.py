"""The whole account in memory: disjoint intervals by partition."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable

from catalog.account.interval import Interval
from catalog.offset_range import OffsetRange, hull


class IntervalChains:
    def __init__(self, intervals: Iterable[Interval] = ()) -> None:
        self._chains: dict[int, list[Interval]] = {}
        for interval in sorted(intervals, key=lambda interval: interval.offsets):
            self._chains.setdefault(interval.offsets.partition, []).append(interval)

    def act(self, offsets: Iterable[OffsetRange], act: Callable[[tuple[Interval, ...]], tuple[Interval, ...]]) -> None:
        """Replace the intervals at some of these offsets by the act's result."""
        by_partition: dict[int, list[OffsetRange]] = {}
        for interval in offsets:
            by_partition.setdefault(interval.partition, []).append(interval)
        for partition, touched in by_partition.items():
            chain = self._chains.setdefault(partition, [])
            reach = hull(touched)
            first = bisect_left(chain, reach.first, key=lambda interval: interval.offsets.last)
            last = bisect_right(chain, reach.last, key=lambda interval: interval.offsets.first)
            chain[first:last] = sorted(act(tuple(chain[first:last])), key=lambda interval: interval.offsets)

    @property
    def intervals(self) -> tuple[Interval, ...]:
        return tuple(interval for _, chain in sorted(self._chains.items()) for interval in chain)
