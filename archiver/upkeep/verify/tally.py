"""Count and digest records by cut. Records may be in any order; no Python object per record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from archiver.wire.record_digest import RecordDigest
from catalog.digests import digest_text

LISTED_GAPS: Final = 64
"""How many gaps between offsets are listed for a cut in a file. The others are only counted."""
_MANY_RUNS: Final = 256

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TallyCut:
    partition: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TallyPiece:
    """A file's records of a cut. `low` and `high` are offsets.

    `gaps` (a limited list) need `is_sorted`. Records of no cut get a piece with `is_outside` per partition.
    """

    cut: TallyCut
    rows: int
    digest: str
    low: int
    high: int
    gaps: tuple[tuple[int, int], ...] = ()
    is_sorted: bool = True
    is_outside: bool = False

    def to_json(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in _OF_PIECE}
        return plain | {"cut": {name: getattr(self.cut, name) for name in _OF_CUT}}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        gaps = tuple((start, end) for start, end in value["gaps"])
        return cls(**{**value, "cut": TallyCut(**value["cut"]), "gaps": gaps})


_OF_CUT: Final = tuple(attribute.name for attribute in fields(TallyCut))
_OF_PIECE: Final = tuple(attribute.name for attribute in fields(TallyPiece))


@dataclass(slots=True)
class _Sum:
    rows: int = 0
    digest: RecordDigest = field(default_factory=RecordDigest)
    low: int = 0
    high: int = -1
    last: int | None = None
    gaps: list[tuple[int, int]] = field(default_factory=list)
    is_sorted: bool = True

    def add(self, offsets: Numbers, digest: RecordDigest) -> None:
        low, high = int(offsets.min()), int(offsets.max())
        self.low, self.high = (low, high) if not self.rows else (min(self.low, low), max(self.high, high))
        self.rows += len(offsets)
        self.digest += digest
        if self.is_sorted:
            first = int(offsets[0]) - 1 if self.last is None else self.last
            steps = np.diff(offsets, prepend=first)
            self.is_sorted = bool((steps > 0).all())
            for index in np.flatnonzero(steps > 1)[: LISTED_GAPS - len(self.gaps)].tolist():
                self.gaps.append((int(offsets[index] - steps[index]) + 1, int(offsets[index])))
        self.last = int(offsets[-1])


class Tally:
    """`cuts` don't overlap."""

    def __init__(self, cuts: Sequence[TallyCut]) -> None:
        self._cuts = sorted(cuts)
        self._places = {
            partition: (first, *_edges(self._cuts[first:end])) for partition, first, end in _by_partition(self._cuts)
        }
        self._sums: dict[tuple[int, int], _Sum] = {}

    def add(self, records: pa.RecordBatch) -> RecordDigest:
        """Return the digest of all records, which have the columns of a replay."""
        partitions, offsets = (_numbers(records.column(name)) for name in ("partition", "offset"))
        index = self._only_place(partitions, offsets)
        if index is not None:
            total = RecordDigest.of_seen(records)
            self._sums.setdefault((index, -1), _Sum()).add(offsets, total)
            return total
        total = RecordDigest()
        keys = self._keys(partitions, offsets)
        edges = np.flatnonzero(np.diff(keys)) + 1
        if len(edges) > _MANY_RUNS:  # an engine sorted the rows by another column
            order = np.argsort(keys, kind="stable")
            records, partitions, offsets, keys = (
                records.take(pa.array(order)),
                partitions[order],
                offsets[order],
                keys[order],
            )
            edges = np.flatnonzero(np.diff(keys)) + 1
        for start, end in zip([0, *edges.tolist()], [*edges.tolist(), len(keys)], strict=True):
            if start == end:
                continue
            digest = RecordDigest.of_seen(records.slice(start, end - start))
            index = int(keys[start])
            entry = self._sums.setdefault((index, int(partitions[start]) if index < 0 else -1), _Sum())
            entry.add(offsets[start:end], digest)
            total += digest
        return total

    def pieces(self) -> tuple[TallyPiece, ...]:
        return tuple(self._piece(index, partition, entry) for (index, partition), entry in sorted(self._sums.items()))

    def _piece(self, place: int, partition: int, counted: _Sum) -> TallyPiece:
        is_outside = place < 0
        cut = (
            TallyCut(partition=partition, start_offset=counted.low, end_offset=counted.high + 1)
            if is_outside
            else self._cuts[place]
        )
        return TallyPiece(
            cut=cut,
            rows=counted.rows,
            digest=counted.digest.text,
            low=counted.low,
            high=counted.high,
            gaps=tuple(counted.gaps) if counted.is_sorted and not is_outside else (),
            is_sorted=counted.is_sorted,
            is_outside=is_outside,
        )

    def _only_place(self, partitions: npt.NDArray[np.signedinteger], offsets: Numbers) -> int | None:
        if not len(partitions) or (partitions != partitions[0]).any():
            return None
        bounds = self._places.get(int(partitions[0]))
        if bounds is None:
            return None
        first, starts, ends = bounds
        index = int(np.searchsorted(starts, offsets.min(), side="right")) - 1
        return first + index if index >= 0 and offsets.max() < ends[index] else None

    def _keys(self, partitions: npt.NDArray[np.signedinteger], offsets: Numbers) -> Numbers:
        """The cut index of each record; negative, by partition, if outside."""
        keys: Numbers = -1 - np.maximum(partitions, -1).astype(np.int64) - 1
        present = np.unique(partitions) if len(partitions) else ()
        for partition in present:
            if int(partition) not in self._places:
                continue
            first, starts, ends = self._places[int(partition)]
            mask = partitions == partition
            places = np.searchsorted(starts, offsets[mask], side="right") - 1
            inside = (places >= 0) & (offsets[mask] < ends[np.maximum(places, 0)])
            keys[mask] = np.where(inside, places + first, keys[mask])
        return keys


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = (column.fill_null(-1) if column.null_count else column).to_numpy(zero_copy_only=False)
    return values


def sum_of(pieces: Iterable[TallyPiece]) -> tuple[int, str]:
    rows, total = 0, 0
    for piece in pieces:
        rows += piece.rows
        total += int(piece.digest, 16)
    return rows, digest_text(total)


def _by_partition(cuts: Sequence[TallyCut]) -> Iterator[tuple[int, int, int]]:
    start = 0
    for index in range(1, len(cuts) + 1):
        if index == len(cuts) or cuts[index].partition != cuts[start].partition:
            yield cuts[start].partition, start, index
            start = index


def _edges(cuts: Sequence[TallyCut]) -> tuple[Numbers, Numbers]:
    starts = np.array([cut.start_offset for cut in cuts], np.int64)
    ends = np.array([cut.end_offset for cut in cuts], np.int64)
    return starts, ends
