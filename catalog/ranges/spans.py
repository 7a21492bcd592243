"""Half-open spans of offsets, as pairs of start and end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort and join adjacent or overlapping spans."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def uncovered(spans: Iterable[tuple[int, int]], cover: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of `spans` outside `cover`."""
    found: list[tuple[int, int]] = []
    covered = joined(cover)
    for start, end in joined(spans):
        at = start
        for low, high in covered:
            if low >= end or high <= at:
                continue
            if low > at:
                found.append((at, low))
            at = high
        if at < end:
            found.append((at, end))
    return found


class Cover:
    """Joined spans by partition, for fast overlap tests."""

    def __init__(self, spans: Iterable[tuple[int, int, int]]) -> None:
        """`spans` are (partition, start, end)."""
        found: dict[int, list[tuple[int, int]]] = {}
        for partition, start, end in spans:
            found.setdefault(partition, []).append((start, end))
        self._spans = {partition: joined(those) for partition, those in found.items()}
        self._starts = {partition: [start for start, _ in those] for partition, those in self._spans.items()}

    def touches(self, partition: int, start: int, end: int) -> bool:
        if start >= end or partition not in self._spans:
            return False
        # The last span that starts before `end` has the highest end of all that do.
        place = bisect_right(self._starts[partition], end - 1)
        return place > 0 and self._spans[partition][place - 1][1] > start

    def beyond(self, spans: Iterable[tuple[int, int, int]]) -> bool:
        """Whether some of their offsets are outside the cover."""
        return any(uncovered([(start, end)], self._spans.get(partition, ())) for partition, start, end in spans)

    def from_ends(self, ends: Mapping[int, int]) -> tuple[tuple[int, int, int], ...]:
        """The cover from each partition's end on, all of a partition without an end."""
        return tuple(
            (partition, max(start, ends.get(partition, start)), end)
            for partition, start, end in self.spans
            if end > ends.get(partition, start)
        )

    @property
    def spans(self) -> tuple[tuple[int, int, int], ...]:
        return tuple((partition, *span) for partition, those in sorted(self._spans.items()) for span in those)
