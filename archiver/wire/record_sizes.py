"""The most bytes of records in an uncompressed batch."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_RECORD_BYTES: Final = 40
"""The most bytes that a record takes beside its key, value and headers."""
_HEADER_BYTES: Final = 10
"""The most bytes that a header takes beside its name and value."""


def sizes_of(records: pa.RecordBatch) -> npt.NDArray[np.int64]:
    sizes = np.full(records.num_rows, _RECORD_BYTES, np.int64)
    for name in ("key", "value"):
        sizes += _lengths(records.column(name))
    headers = records.column("headers")
    entries = headers.flatten()
    if len(entries):
        lengths = _lengths(entries.field("key")) + _lengths(entries.field("value")) + _HEADER_BYTES
        np.add.at(sizes, pc.list_parent_indices(headers).to_numpy(), lengths)
    return sizes


def _lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    lengths: npt.NDArray[np.int64] = pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64)
    return lengths
