"""Groups column chunks, to save requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Generic, TypeVar

HOLE_BYTES: Final = 64 << 10
"""The largest gap between chunks that are read together."""

FEW: Final = 3
"""Requests for single pages, if these lie near enough."""
FILLING: Final = 1 << 20
"""Bytes between pages that are read with them, so that fewer requests are made: a store takes as long to answer one."""

Chunk = TypeVar("Chunk")


@dataclass(frozen=True, slots=True)
class Run(Generic[Chunk]):
    start: int
    end: int
    chunks: tuple[Chunk, ...]


def runs(chunks: Iterable[Chunk], span: Callable[[Chunk], tuple[int, int]], *, most: int) -> Iterator[Run[Chunk]]:
    """Group nearby chunks into runs of at most `most` bytes, or one larger chunk."""
    start = end = 0
    run: list[Chunk] = []
    for first, last, chunk in sorted(((*span(item), item) for item in chunks), key=lambda placed: placed[:2]):
        if run and (first - end > HOLE_BYTES or max(end, last) - start > most):
            yield Run(start, end, tuple(run))
            run = []
        start, end = (start, max(end, last)) if run else (first, last)
        run.append(chunk)
    if run:
        yield Run(start, end, tuple(run))


def few_runs(chunks: Iterable[Chunk], span: Callable[[Chunk], tuple[int, int]], *, most: int) -> Iterator[Run[Chunk]]:
    """Also join the nearest runs, until these are few or too far apart."""
    parts = list(runs(chunks, span, most=most))
    gaps = sorted((after.start - before.end, number) for number, (before, after) in enumerate(pairwise(parts)))
    left, joined = FILLING, set()
    for gap, number in gaps[: max(0, len(parts) - FEW)]:
        left -= gap
        if left < 0:
            break
        joined.add(number)
    group: list[Run[Chunk]] = []
    for number, part in enumerate(parts):
        group.append(part)
        if number not in joined:
            yield Run(group[0].start, max(run.end for run in group), tuple(it for run in group for it in run.chunks))
            group = []
