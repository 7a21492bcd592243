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
