"""Term runs: sorted files of (term, partition, offset), of one indexed column of a topic (docs/adr/0100)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FAN_OUT: Final = 8
"""Runs of a level that become one of the next level."""


@dataclass(frozen=True, slots=True)
class LeafTable:
    """A row for each leaf: its first term, the start and number of its bytes, and their CRC-32."""

    numbers: npt.NDArray[np.int64]

    @classmethod
    def of_bytes(cls, data: bytes) -> LeafTable:
        import numpy as np  # short commands do without it

        return cls(np.frombuffer(data, "<i8").reshape(-1, 4))

    def to_bytes(self) -> bytes:
        return self.numbers.astype("<i8").tobytes()

    def __len__(self) -> int:
        return len(self.numbers)

    def row(self, number: int) -> tuple[int, int, int, int]:
        first, start, size, checksum = self.numbers[number].tolist()
        return first, start, size, checksum

    def of_term(self, term: int) -> range:
        import numpy as np

        firsts = self.numbers[:, 0]
        start = int(np.searchsorted(firsts, term, "left")) - 1
        return range(max(0, start), int(np.searchsorted(firsts, term, "right")))


@dataclass(frozen=True, slots=True, kw_only=True)
class TermRun:
    """`spans` are the covered offsets: partition, first, end.

    `column` identifies the indexed column also after renames; `name` is the configuration's. A run is valid for one
    `mapping`. `begun_ms` is when the oldest build of its postings began, by the clock of Postgres.
    """

    id: str
    column: str
    name: str
    kind: str
    mapping: str
    level: int = 0
    path: str
    size_bytes: int
    checksum: str
    entries: int
    begun_ms: int
    spans: tuple[tuple[int, int, int], ...]
    leaves: LeafTable
    footer: bytes

    def meets(self, spans: Mapping[int, Sequence[tuple[int, int]]]) -> bool:
        """`spans` are starts and ends by partition."""
        return any(
            start < end_other and start_other < end
            for partition, start, end in self.spans
            for start_other, end_other in spans.get(partition, ())
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """`files` has the ids of all runs with a file's postings, by column and path.

    Files that aren't in `files`, or whose runs aren't all in `runs`, are not covered.
    """

    runs: tuple[TermRun, ...] = ()
    files: Mapping[tuple[str, str], frozenset[str]]
