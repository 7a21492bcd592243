"""Which column chunks of a file are read together, so that a row group takes few requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

HOLE_BYTES: Final = 64 << 10
"""What may lie between chunks that are read together."""

Chunk = TypeVar("Chunk")


@dataclass(frozen=True, slots=True)
class Run(Generic[Chunk]):
    """The bytes from `start` to `end` of a file, and the chunks that lie there."""

    start: int
    end: int
    chunks: tuple[Chunk, ...]


def runs(chunks: Iterable[Chunk], span: Callable[[Chunk], tuple[int, int]], *, most: int) -> Iterator[Run[Chunk]]:
    """Group chunks that lie near each other into runs of up to `most` bytes. A larger chunk is alone.

    `span` tells where a chunk begins and ends. Runs come in the order of the file.
    """
    start = end = 0
    run: list[Chunk] = []
    for first, last, each in sorted(((*span(one), one) for one in chunks), key=lambda placed: placed[:2]):
        if run and (first - end > HOLE_BYTES or max(end, last) - start > most):
            yield Run(start, end, tuple(run))
            run = []
        start, end = (start, max(end, last)) if run else (first, last)
        run.append(each)
    if run:
        yield Run(start, end, tuple(run))
