"""Selects the files to read by manifest bounds, if any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from archiver.archive import file_columns
from archiver.archive.deletes import Mask
from archiver.archive.open_file import TopicStorage
from archiver.archive.table_files import TableFile, TableFiles
from archiver.storage.segment import RowRange

UNKNOWN_LOW = -1
"""The lowest offset of a file without bounds, which comes before all other files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSnapshot:
    """`first_offsets` are set after records were retired."""

    snapshot_id: int | None
    files: TableFiles
    next_offsets: Mapping[int, int]
    storage: TopicStorage
    leader_epochs: Mapping[int, int] = field(default_factory=dict)
    first_offsets: Mapping[int, int] = field(default_factory=dict)

    @property
    def partitions(self) -> tuple[int, ...]:
        return tuple(sorted(self.files.partitions | self.next_offsets.keys()))


def select_files(files: TableFiles, wanted: RowRange) -> Iterator[TableFile]:
    """Yield files by lowest possible offset."""
    rows = np.flatnonzero(may_hold(files.columns, wanted))
    lows = pc.fill_null(files.columns[file_columns.LOW_OFFSET], UNKNOWN_LOW).to_numpy()[rows]
    return files.pick(rows[np.argsort(lows, kind="stable")])


def may_hold(files: pa.Table, wanted: RowRange) -> Mask:
    kept = _within(files, wanted.partition, wanted.partition, file_columns.LOW_PARTITION, file_columns.HIGH_PARTITION)
    kept &= _within(
        files, wanted.start_offset, wanted.end_offset - 1, file_columns.LOW_OFFSET, file_columns.HIGH_OFFSET
    )
    if wanted.min_timestamp is not None:
        kept &= _unless_false(pc.greater_equal(files[file_columns.LATEST], wanted.min_timestamp))
    return kept


def _within(files: pa.Table, first: int, last: int, low: str, high: str) -> Mask:
    return _unless_false(pc.and_(pc.greater_equal(files[high], first), pc.less_equal(files[low], last)))


def _unless_false(answer: pa.ChunkedArray) -> Mask:
    kept: Mask = pc.fill_null(answer, fill_value=True).to_numpy()
    return kept
