"""Half-open spans of offsets, as pairs of start and end."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping

from catalog.offset_range import OffsetRange


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def uncovered(spans: Iterable[tuple[int, int]], cover: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    gaps: list[tuple[int, int]] = []
    covered = joined(cover)
    for start, end in joined(spans):
        at = start
        for low, high in covered:
            if low >= end or high <= at:
                continue
            if low > at:
                gaps.append((at, low))
            at = high
        if at < end:
            gaps.append((at, end))
    return gaps


def by_partition(ranges: Iterable[OffsetRange]) -> dict[int, list[tuple[int, int]]]:
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for offsets in ranges:
        spans[offsets.partition].append((offsets.first, offsets.end))
    return spans


class Cover:
    def __init__(self, ranges: Iterable[OffsetRange]) -> None:
        self._spans = {partition: joined(spans) for partition, spans in by_partition(ranges).items()}
        self._starts = {partition: [start for start, _ in pairs] for partition, pairs in self._spans.items()}

    def touches(self, offsets: OffsetRange) -> bool:
        partition = offsets.partition
        if partition not in self._spans:
            return False
        # The last span that starts before the range's end has the highest end of all that do.
        index = bisect_right(self._starts[partition], offsets.last)
        return index > 0 and self._spans[partition][index - 1][1] > offsets.first

    def beyond(self, ranges: Iterable[OffsetRange]) -> bool:
        return any(
            uncovered([(offsets.first, offsets.end)], self._spans.get(offsets.partition, ())) for offsets in ranges
        )

    def from_ends(self, ends: Mapping[int, int]) -> tuple[OffsetRange, ...]:
        """All of a partition without an end."""
        return tuple(
            OffsetRange(offsets.partition, max(offsets.first, ends.get(offsets.partition, 0)), offsets.last)
            for offsets in self.ranges
            if offsets.last >= ends.get(offsets.partition, 0)
        )

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        return tuple(
            OffsetRange.half_open(partition, start, end)
            for partition, spans in sorted(self._spans.items())
            for start, end in spans
        )
