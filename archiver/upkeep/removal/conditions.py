"""Which rows a removal takes out: those below a first offset, with given offsets, or that a condition holds for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from archiver.archive.deletes import Mask
from archiver.replay.where import Where


@dataclass(frozen=True, slots=True)
class Below:
    """The rows below the first offsets of their partitions."""

    first_offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """The rows with these offsets: joined, half-open spans by partition."""

    spans: Mapping[int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, slots=True)
class Matching:
    """The rows that a condition holds for and whose offsets are below the `ends` of their partitions."""

    where: Where
    ends: Mapping[int, int]


Condition: TypeAlias = Below | AtOffsets | Matching


def rows_of(condition: Condition, records: pa.RecordBatch) -> Mask:
    """Say for each record whether it is taken out."""
    partitions = records.column("partition").to_numpy()
    offsets = records.column("offset").to_numpy()
    found = np.zeros(len(offsets), np.bool_)
    match condition:
        case Below(first_offsets):
            for partition, offset in first_offsets.items():
                found |= (partitions == partition) & (offsets < offset)
        case AtOffsets(spans):
            for partition, those in spans.items():
                edges = np.array(those, np.int64).reshape(-1)
                found |= (partitions == partition) & (np.searchsorted(edges, offsets, side="right") % 2 == 1)
        case Matching(where, ends):
            for partition, end in ends.items():
                found |= (partitions == partition) & (offsets < end)
            found &= where.rows(records)
        case _ as never:
            assert_never(never)
    return found
