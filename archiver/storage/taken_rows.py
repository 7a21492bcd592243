"""Takes rows out of a block that is read whole."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def taken(batches: Iterable[pa.RecordBatch], rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """By rising positions in all batches. Only these rows stay in memory."""
    first, parts = 0, []
    for batch in batches:
        low, high = np.searchsorted(rows, (first, first + batch.num_rows))
        if low < high:
            parts.append(batch.take(pa.array(rows[low:high] - first)))
        first += batch.num_rows
    return pa.concat_batches(parts)
