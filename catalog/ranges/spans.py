"""Half-open spans of offsets, as pairs of start and end."""

from __future__ import annotations

from collections.abc import Iterable


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort the spans, and join those that touch or overlap."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def uncovered(spans: Iterable[tuple[int, int]], cover: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of `spans` that no span of `cover` covers."""
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
