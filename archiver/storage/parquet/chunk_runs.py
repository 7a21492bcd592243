"""Groups column chunks that are read together, to save requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

HOLE_BYTES: Final = 64 << 10
"""The largest gap between chunks that are read together."""

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
