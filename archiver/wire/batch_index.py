"""The index of decoded batches: where their rows lie, and the times that the table's partitioning goes by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from archiver.wire.attributes import LOG_APPEND_TIME
from archiver.wire.columns import NO_TIME, NO_TIMESTAMP, BatchIndex, Int64Array


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBatch:
    """A batch that gave rows: its place among the headers and the rows; `in_order` as `RecordBuilder.append` says."""

    index: int
    first_row: int
    rows: int
    in_order: bool


def index_batches(kept: list[KeptBatch], headers: npt.NDArray[Any], timestamps: Int64Array) -> BatchIndex:
    """Index the batches; `headers` holds theirs, one for each, and `timestamps` the rows' producer times in ms."""
    first_row = np.array([batch.first_row for batch in kept], dtype=np.int64)
    rows = np.array([batch.rows for batch in kept], dtype=np.int64)
    median = timestamps[first_row + (rows - 1) // 2]
    for place, batch in enumerate(kept):
        if not batch.in_order:
            median[place] = _lower_median(timestamps[batch.first_row : batch.first_row + batch.rows])
    return BatchIndex(
        base_offset=headers["base_offset"].copy(),
        last_offset=headers["last_offset"].copy(),
        first_row=first_row,
        rows=rows,
        append_timestamp=np.where(headers["attributes"] & LOG_APPEND_TIME, headers["max_timestamp"], NO_TIME),
        median_timestamp=median,
        bytes=headers["size"].copy(),
    )


def _lower_median(timestamps: Int64Array) -> int:
    times = timestamps[timestamps != NO_TIMESTAMP]
    if not len(times):
        return NO_TIME
    middle = (len(times) - 1) // 2
    return int(np.partition(times, middle)[middle])
