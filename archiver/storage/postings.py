"""Postings: a term's offsets, as sorted rows. Few are exact, many become a bitmap of granules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from catalog.ranges.spans import joined

TERM: Final = "transform_value"
PARTITION: Final = "partition"
OFFSET: Final = "offset"
GRANULES: Final = "granules"

POSTINGS: Final = pa.schema(
    [
        pa.field(TERM, pa.int64(), nullable=False),
        pa.field(PARTITION, pa.int32(), nullable=False),
        pa.field(OFFSET, pa.int64(), nullable=False),
        pa.field(GRANULES, pa.binary()),
    ]
)
"""A row is one offset. With `granules`, a Roaring bitmap of 64 bits, it is all offsets of these granules, and `offset`
is the first one."""

GRANULE_BITS: Final = 12
"""A granule is 4,096 offsets of a partition."""
GRANULE_MASK: Final = (1 << GRANULE_BITS) - 1

Numbers: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TermOffsets:
    """In any order."""

    terms: Numbers
    partitions: npt.NDArray[np.int32]
    offsets: Numbers

    def __len__(self) -> int:
        return len(self.terms)

    def spans(self) -> list[tuple[int, int, int]]:
        """Return partitions with their lowest offset, and the one after their highest."""
        if not len(self):
            return []
        places = np.append(0, 1 + np.flatnonzero(self.partitions[1:] != self.partitions[:-1]))
        lows, highs = (extreme.reduceat(self.offsets, places).tolist() for extreme in (np.minimum, np.maximum))
        spans: dict[int, tuple[int, int]] = {}
        for partition, low, high in zip(self.partitions[places].tolist(), lows, highs, strict=True):
            start, end = spans.get(partition, (low, high + 1))
            spans[partition] = min(start, low), max(end, high + 1)
        return [(partition, *spans[partition]) for partition in sorted(spans)]

    @classmethod
    def joined(cls, parts: Sequence[TermOffsets]) -> Self:
        return cls(
            np.concatenate([it.terms for it in parts]),
            np.concatenate([it.partitions for it in parts]),
            np.concatenate([it.offsets for it in parts]),
        )


def postings_of(found: TermOffsets, most_exact: int) -> pa.Table:
    """Beyond `most_exact` offsets in a partition, a term gets a bitmap."""
    order = _order(found)
    terms, partitions, offsets = found.terms[order], found.partitions[order], found.offsets[order]
    table = pa.table(
        [pa.array(terms), pa.array(partitions), pa.array(offsets), pa.nulls(len(terms), pa.binary())], schema=POSTINGS
    )
    return _packed(table, most_exact)


def _order(found: TermOffsets) -> Numbers:
    """Most files are in order of offsets."""
    partitions, offsets = found.partitions, found.offsets
    falls = (partitions[1:] < partitions[:-1]) | ((partitions[1:] == partitions[:-1]) & (offsets[1:] < offsets[:-1]))
    if falls.any():
        return np.lexsort((offsets, partitions, found.terms))
    # Numbers sort several times faster than their places do: sort terms with places for their last bits.
    mask = (1 << len(found).bit_length()) - 1
    order = np.sort((found.terms & ~mask) | np.arange(len(found))) & mask
    terms = found.terms[order]
    return order if (terms[1:] >= terms[:-1]).all() else order[np.argsort(terms, kind="stable")]


def merged_postings(parts: Sequence[pa.Table], most_exact: int) -> pa.Table:
    table = pa.concat_tables(parts)
    order = np.lexsort([table[name].to_numpy() for name in (OFFSET, PARTITION, TERM)])
    return _packed(table.take(pa.array(order)), most_exact)


def _packed(table: pa.Table, most_exact: int) -> pa.Table:
    """Drop repeated offsets; replace large groups by bitmaps."""
    table = table.combine_chunks()
    terms, partitions, offsets = (table[name].to_numpy() for name in (TERM, PARTITION, OFFSET))
    if not len(terms):
        return table
    is_first = np.ones(len(terms), np.bool_)
    is_first[1:] = (terms[1:] != terms[:-1]) | (partitions[1:] != partitions[:-1])
    if is_first.all():
        return table
    starts = np.flatnonzero(is_first)
    ends = np.append(starts[1:], len(terms))
    has_bitmap = pc.is_valid(table[GRANULES]).to_numpy()
    is_large = (ends - starts > most_exact) | np.logical_or.reduceat(has_bitmap, starts)
    kept = np.ones(len(terms), np.bool_)
    kept[1:] = is_first[1:] | (offsets[1:] != offsets[:-1])
    large = np.flatnonzero(is_large)
    if not len(large):
        return table.filter(pa.array(kept))
    bitmaps: list[bytes] = []
    for start, end in zip(starts[large].tolist(), ends[large].tolist(), strict=True):
        kept[start + 1 : end] = False
        bitmaps.append(_bitmap(offsets[start:end], table[GRANULES].slice(start, end - start)))
    octets = np.full(len(terms), -1, np.int64)
    octets[starts[large]] = np.arange(len(large))
    places = pa.array(octets[kept], mask=octets[kept] < 0)
    first = np.where(octets >= 0, offsets >> GRANULE_BITS << GRANULE_BITS, offsets)
    columns = [table[TERM], table[PARTITION], pa.array(first)]
    rows = [column.filter(pa.array(kept)) for column in columns]
    return pa.table([*rows, pa.array(bitmaps, pa.binary()).take(places)], schema=POSTINGS)


@dataclass(frozen=True, slots=True)
class OffsetSpans:
    """Disjoint, sorted, half-open spans of one partition's offsets."""

    starts: Numbers
    ends: Numbers

    @classmethod
    def of(cls, spans: Iterable[tuple[int, int]]) -> Self:
        bounds = np.array(joined(spans), np.int64).reshape(-1, 2)
        return cls(bounds[:, 0], bounds[:, 1])

    def __len__(self) -> int:
        return len(self.starts)

    def meet(self, lows: Numbers, ends: Numbers) -> Mask:
        """Say of each interval whether one of its offsets is in a span."""
        places = np.searchsorted(self.ends, lows, "right")
        has_span = places < len(self)
        has_span[has_span] = self.starts[places[has_span]] < ends[has_span]
        return has_span

    def enclose(self, lows: Numbers, ends: Numbers) -> Mask:
        """Say of each interval whether all its offsets are in one span."""
        places = np.searchsorted(self.starts, lows, "right") - 1
        has_span = places >= 0
        has_span[has_span] = ends[has_span] <= self.ends[places[has_span]]
        return has_span

    def border_granules(self) -> OffsetSpans:
        """Return the granules of which a span has some offsets, but not all."""
        borders = np.unique(np.concatenate([self.starts, self.ends]))
        lows = np.unique(borders[borders & GRANULE_MASK != 0] >> GRANULE_BITS) << GRANULE_BITS
        return OffsetSpans.of(zip(lows.tolist(), (lows + GRANULE_MASK + 1).tolist(), strict=True))


def left_without(rows: pa.Table, gone: Mapping[int, OffsetSpans], *, is_strict: bool = False) -> pa.Table:
    """Return the postings without offsets that are gone, and without granules of which all offsets are.

    `is_strict`: without all granules that have such an offset.
    """
    partitions, offsets = rows[PARTITION].to_numpy(), rows[OFFSET].to_numpy()
    is_exact = pc.is_null(rows[GRANULES]).to_numpy()
    kept, firsts = np.ones(len(rows), np.bool_), offsets.copy()
    fresh: dict[int, bytes] = {}
    for partition, spans in gone.items():
        is_of_partition = partitions == partition
        exact = np.flatnonzero(is_of_partition & is_exact)
        kept[exact] = ~spans.meet(offsets[exact], offsets[exact] + 1)
        may_be_gone = offsets < spans.ends.max(initial=0)
        for row in np.flatnonzero(is_of_partition & ~is_exact & may_be_gone).tolist():
            granules = np.array(BitMap64.deserialize(rows[GRANULES][row].as_py()).to_array(), np.int64)
            lows = granules << GRANULE_BITS
            are_gone = (spans.meet if is_strict else spans.enclose)(lows, lows + GRANULE_MASK + 1)
            if are_gone.any():
                left = granules[~are_gone]
                kept[row] = bool(len(left))
                firsts[row] = lows[~are_gone][0] if len(left) else lows[0]
                fresh[row] = bytes(BitMap64(left.tolist()).serialize())
    bitmaps = rows[GRANULES]
    if fresh:
        bitmaps = pa.array([fresh.get(row, data) for row, data in enumerate(bitmaps.to_pylist())], pa.binary())
    columns = [rows[TERM], rows[PARTITION], pa.array(firsts), bitmaps]
    return pa.table(columns, schema=POSTINGS).filter(pa.array(kept))


def _bitmap(offsets: Numbers, bitmaps: pa.ChunkedArray) -> bytes:
    granules = BitMap64(np.unique(offsets >> GRANULE_BITS).tolist())
    for data in bitmaps.drop_null().to_pylist():
        granules |= BitMap64.deserialize(data)
    return bytes(granules.serialize())


@dataclass(frozen=True, slots=True)
class Spots:
    """Sorted, closed intervals of offsets, by partition."""

    intervals: dict[int, tuple[Numbers, Numbers]]

    @classmethod
    def of(cls, tables: Sequence[pa.Table], term: int) -> Self:
        """Raises ValueError for a damaged bitmap."""
        lows: dict[int, list[Numbers]] = {}
        for table in tables:
            for partition, low, high in _intervals(table.filter(pc.equal(table[TERM], term))):
                lows.setdefault(partition, []).append(np.stack([low, high]))
        return cls({partition: _sorted(np.concatenate(parts, axis=1)) for partition, parts in lows.items()})

    @classmethod
    def joined(cls, spots: Sequence[Spots]) -> Self:
        partitions = {partition for spot in spots for partition in spot.intervals}
        return cls(
            {
                partition: _sorted(
                    np.concatenate([np.stack(it.intervals[partition]) for it in spots if partition in it.intervals], 1)
                )
                for partition in partitions
            }
        )

    def touch(self, low_partitions: Numbers, high_partitions: Numbers, lows: Numbers, highs: Numbers) -> Mask:
        """Whether the term may be in each box, bounds included."""
        touched = np.zeros(len(lows), np.bool_)
        for partition, (starts, ends) in self.intervals.items():
            places = np.searchsorted(ends, lows, "left")
            is_inside = places < len(starts)
            is_inside &= starts[np.minimum(places, len(starts) - 1)] <= highs
            touched |= is_inside & (low_partitions <= partition) & (partition <= high_partitions)
        return touched


def _intervals(rows: pa.Table) -> Iterator[tuple[int, Numbers, Numbers]]:
    partitions, offsets = rows[PARTITION].to_numpy(), rows[OFFSET].to_numpy()
    is_exact = pc.is_null(rows[GRANULES]).to_numpy()
    for partition in np.unique(partitions[is_exact]).tolist():
        exact = offsets[is_exact & (partitions == partition)]
        yield partition, exact, exact
    for row in np.flatnonzero(~is_exact).tolist():
        granules = np.array(BitMap64.deserialize(rows[GRANULES][row].as_py()).to_array(), np.int64)
        low = granules << GRANULE_BITS
        yield int(partitions[row]), low, low + (1 << GRANULE_BITS) - 1


def _sorted(bounds: npt.NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """An end is the highest of all before, so ends never fall."""
    order = np.argsort(bounds[0], kind="stable")
    return bounds[0][order], np.maximum.accumulate(bounds[1][order])
