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
    """`spans` have all postings: partition, first, end.

    `column` identifies the indexed column also after renames; `name` is the configuration's. A run is valid for one
    `mapping`. No record that had left the table by `begun_ms`, a time of Postgres, is in it.
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

    @property
    def identity(self) -> str:
        return self.column


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """`files` has the ids of all runs with a file's postings, by column and path.

    Files that aren't in `files`, or whose runs aren't all in `runs`, are not covered.
    """

    runs: tuple[TermRun, ...] = ()
    files: Mapping[tuple[str, str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class GoneOffsets:
    """Offsets of a partition, start and end, whose records had left the table by `noted_ms`.

    Offsets that never had a record may be among them.
    """

    partition: int
    start: int
    end: int
    noted_ms: int

    def may_be_in(self, begun_ms: int, spans: Sequence[Sequence[int]]) -> bool:
        """Whether a run may have postings of these records."""
        return begun_ms <= self.noted_ms and any(
            partition == self.partition and start < self.end and self.start < end for partition, start, end in spans
        )
