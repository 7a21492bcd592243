"""Which ranges share offsets with files or other ranges: by sorting, since there may be 100,000 of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from archiver.archive.table_files import Bounds, TableFile
from catalog.ranges.holes import ExpectedRange

_ANY = Bounds(low=0, high=np.iinfo(np.int64).max)


class Place(NamedTuple):
    """Where rows may be: partitions and offsets, both bounds included."""

    low_partition: int
    high_partition: int
    low_offset: int
    high_offset: int


def place_of_file(file: TableFile) -> Place:
    """Where a file may have rows, by its bounds. Anywhere where it states none."""
    partitions, offsets = file.partitions or _ANY, file.offsets or _ANY
    return Place(partitions.low, partitions.high, offsets.low, offsets.high)


def overlapping(ranges: Sequence[ExpectedRange], places: Iterable[Place]) -> npt.NDArray[np.bool_]:
    """Of each range whether it shares an offset with one of the places."""
    found = np.zeros(len(ranges), np.bool_)
    held = np.array(sorted(places, key=lambda each: each.low_offset), np.int64).reshape(-1, 4)
    partitions = np.array([each.partition for each in ranges], np.int64)
    starts = np.array([each.start_offset for each in ranges], np.int64)
    ends = np.array([each.end_offset for each in ranges], np.int64)
    for partition in np.unique(partitions) if len(held) else ():
        those = held[(held[:, 0] <= partition) & (partition <= held[:, 1])]
        if len(those):
            at = np.flatnonzero(partitions == partition)
            begun = np.searchsorted(those[:, 2], ends[at])
            furthest = np.maximum.accumulate(those[:, 3])
            found[at] = (begun > 0) & (furthest[np.maximum(begun, 1) - 1] >= starts[at])
    return found
