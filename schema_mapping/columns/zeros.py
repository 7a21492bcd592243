"""Zero bytes for columns without values."""

from __future__ import annotations

import mmap
from functools import cache
from typing import Final

import pyarrow as pa

NO_BYTES: Final = pa.py_buffer(b"")
PAGE_BITS: Final = 12


def zeros(size: int) -> pa.Buffer:
    """Shared and read-only. Unread pages cost no memory."""
    return _zeros(max(PAGE_BITS, (size - 1).bit_length()))


@cache
def _zeros(bits: int) -> pa.Buffer:
    return pa.py_buffer(mmap.mmap(-1, 1 << bits, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ))
