"""Makes allocators reuse freed memory and return the rest to the system.

Without it, page faults take as long as decoding, and fragmentation adds up to gigabytes.
"""

from __future__ import annotations

import ctypes
import gc
import os
from contextlib import suppress
from typing import Final

GIVEN_BACK_EVERY: Final = 10.0
"""Seconds from one time that memory is given back to the next."""
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 16 << 20
"""The texts of 32,768 records of a stream are often above 8 MiB."""
_KEPT_BYTES: Final = 256 << 20
_HEAPS: Final = 2


def share_one_allocator() -> None:
    """Use malloc in Arrow, with few arenas. Call this before Arrow is loaded.

    Blocks of 16 MiB or more are returned at once. A given `ARROW_DEFAULT_MEMORY_POOL` is kept.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        library.mallopt(_M_ARENA_MAX, _HEAPS)


def give_freed_memory_back() -> None:
    """Return all free memory to the system, including free pages between used ones."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def leave_out_of_collections() -> None:
    """Exempt all current objects from garbage collection."""
    gc.collect()
    gc.freeze()
