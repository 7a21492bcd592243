"""Arrow columns without spare memory, so that AddressSanitizer sees reads past the end."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa


def exact_buffer(octets: bytes) -> pa.Buffer:
    """Return a buffer of exact size; Arrow's own are rounded up."""
    return pa.py_buffer(array("B", octets)[:])


def exact_binary(values: Sequence[bytes | None], *, large: bool = False) -> pa.Array:
    ends = np.array([0, *accumulate(len(value or b"") for value in values)], np.int64 if large else np.int32)
    validity = np.packbits(np.array([value is not None for value in values], np.bool_), bitorder="little")
    return pa.Array.from_buffers(
        pa.large_binary() if large else pa.binary(),
        len(values),
        [exact_buffer(content) for content in (validity.tobytes(), ends.tobytes(), b"".join(v or b"" for v in values))],
    )
