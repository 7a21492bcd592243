"""Zeros for columns in which no row has anything: pages that nobody writes, free of cost until they are read."""

from __future__ import annotations

import mmap
from functools import cache

import pyarrow as pa

PAGE_BITS = 12


def zeros(size: int) -> pa.Buffer:
    """A buffer of at least `size` bytes, all zero, shared by all who ask; it can't be written."""
    return _zeros(max(PAGE_BITS, (size - 1).bit_length()))


@cache
def _zeros(bits: int) -> pa.Buffer:
    return pa.py_buffer(mmap.mmap(-1, 1 << bits, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ))
