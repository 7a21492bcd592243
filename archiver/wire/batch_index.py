"""The index of decoded batches: where their rows lie, and the times that the table's partitioning goes by."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from archiver.wire.attributes import LOG_APPEND_TIME
from archiver.wire.columns import NO_TIME, NO_TIMESTAMP, BatchIndex, Int64Array

NO_TYPE: Final = -1
CREATE: Final = 0
LOG_APPEND: Final = 1


def timestamp_types(headers: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """The protocol's timestamp type of each batch: format v0 has none."""
    appended = np.where(headers["attributes"] & LOG_APPEND_TIME, LOG_APPEND, CREATE)
    types: npt.NDArray[np.int32] = np.where(headers["magic"] == 0, NO_TYPE, appended).astype(np.int32)
    return types


def index_batches(
    headers: npt.NDArray[Any],
    first_row: Int64Array,
    rows: Int64Array,
    in_order: npt.NDArray[np.bool_],
    timestamps: Int64Array,
) -> BatchIndex:
    """Index the batches that gave rows, an element of the first four for each; `timestamps` are the rows' in ms.

    `in_order` says of a batch that each row has a time and these never fall.
    """
    median = timestamps[first_row + (rows - 1) // 2]
    for place in np.flatnonzero(~in_order).tolist():
        start = int(first_row[place])
        median[place] = _lower_median(timestamps[start : start + int(rows[place])])
    return BatchIndex(
        base_offset=headers["base_offset"].copy(),
        last_offset=headers["last_offset"].copy(),
        first_row=first_row,
        rows=rows,
        append_timestamp=np.where(timestamp_types(headers) == LOG_APPEND, headers["max_timestamp"], NO_TIME),
        median_timestamp=median,
        bytes=headers["size"].copy(),
    )


def _lower_median(timestamps: Int64Array) -> int:
    times = timestamps[timestamps != NO_TIMESTAMP]
    if not len(times):
        return NO_TIME
    middle = (len(times) - 1) // 2
    return int(np.partition(times, middle)[middle])
