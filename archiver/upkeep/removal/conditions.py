"""The rows to remove: below a first offset, at given offsets, or matching a condition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from archiver.archive.assemble import Mappings
from archiver.archive.deletes import Mask
from archiver.records.column_answers import answer
from archiver.records.table_columns import TableColumn
from archiver.records.where import Where
from archiver.records.where_syntax import ColumnIs


@dataclass(frozen=True, slots=True)
class Below:
    first_offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """Joined, half-open spans. `is_search` if a user named them, instead of an earlier search."""

    spans: Mapping[int, tuple[tuple[int, int], ...]]
    is_search: bool = False


@dataclass(frozen=True, slots=True)
class Matching:
    """Only rows below the `ends` of their partitions."""

    where: Where
    ends: Mapping[int, int]
    columns: Mapping[ColumnIs, TableColumn] = field(default_factory=dict)


Condition: TypeAlias = Below | AtOffsets | Matching


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """`unjudged` is None if all rows can be judged."""

    going: Mask
    unjudged: Mask | None = None


def judge(condition: Condition, rows: pa.RecordBatch, records: pa.RecordBatch, mappings: Mappings) -> RowVerdict:
    partitions = records.column("partition").to_numpy()
    offsets = records.column("offset").to_numpy()
    mask = np.zeros(len(offsets), np.bool_)
    match condition:
        case Below(first_offsets):
            for partition, offset in first_offsets.items():
                mask |= (partitions == partition) & (offsets < offset)
        case AtOffsets(spans):
            for partition, ranges in spans.items():
                edges = np.array(ranges, np.int64).reshape(-1)
                mask |= (partitions == partition) & (np.searchsorted(edges, offsets, side="right") % 2 == 1)
        case Matching(where, ends, columns):
            for partition, end in ends.items():
                mask |= (partitions == partition) & (offsets < end)
            if not columns:
                return RowVerdict(mask & where.rows(records))
            answers = {asked: answer(column, rows, mappings) for asked, column in columns.items()}
            going = where.rows(records, answers)
            return RowVerdict(mask & going, mask & where.rows(records, answers, unknown=True) & ~going)
        case _ as never:
            assert_never(never)
    return RowVerdict(mask)
