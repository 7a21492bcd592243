"""Read a log past recorded losses, for comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archiver.errors import CorruptBatch, LeaderSilent

if TYPE_CHECKING:
    from archiver.wire.columns import DecodedBatches


@dataclass(frozen=True, slots=True)
class ReadableLog:
    """Skips unreadable recorded losses, half-open by partition."""

    read: Callable[[int, int, int], Iterable[DecodedBatches]]
    lost: Callable[[], Mapping[int, Sequence[tuple[int, int]]]]

    def __call__(self, partition: int, start_offset: int, end_offset: int) -> Iterator[DecodedBatches]:
        """Raises for offsets that aren't lost."""
        at = start_offset
        while True:
            try:
                for piece in self.read(partition, at, end_offset):
                    yield piece
                    at = piece.next_offset
            except (CorruptBatch, LeaderSilent):
                ends = [end for start, end in self.lost().get(partition, ()) if start <= at < end]
                if not ends:
                    raise
                at = ends[0]
                if at >= end_offset:
                    return
            else:
                return
