"""Find overlapping ranges by sorting: there may be 100,000."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archiver.archive.table_files import TableFile, ValueBounds
from catalog.ranges.holes import ExpectedRange

_ANY = ValueBounds(low=0, high=np.iinfo(np.int64).max)


class RowBounds(NamedTuple):
    """Inclusive."""

    low_partition: int
    high_partition: int
    low_offset: int
    high_offset: int


def place_of_file(file: TableFile) -> RowBounds:
    partitions, offsets = file.partitions or _ANY, file.offsets or _ANY
    return RowBounds(partitions.low, partitions.high, offsets.low, offsets.high)


def overlapping(ranges: Sequence[ExpectedRange], places: Iterable[RowBounds]) -> npt.NDArray[np.bool_]:
    overlaps = np.zeros(len(ranges), np.bool_)
    bounds = np.array(sorted(places, key=lambda row_bounds: row_bounds.low_offset), np.int64).reshape(-1, 4)
    partitions = np.array([item.partition for item in ranges], np.int64)
    starts = np.array([item.start_offset for item in ranges], np.int64)
    ends = np.array([item.end_offset for item in ranges], np.int64)
    for partition in np.unique(partitions) if len(bounds) else ():
        candidates = bounds[(bounds[:, 0] <= partition) & (partition <= bounds[:, 1])]
        if len(candidates):
            at = np.flatnonzero(partitions == partition)
            begun = np.searchsorted(candidates[:, 2], ends[at])
            furthest = np.maximum.accumulate(candidates[:, 3])
            overlaps[at] = (begun > 0) & (furthest[np.maximum(begun, 1) - 1] >= starts[at])
    return overlaps
