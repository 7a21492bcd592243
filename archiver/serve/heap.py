"""Tells the allocators of a server's process to use freed memory again, and to give the rest of it back.

Batches, columns and files' bytes come and go in pieces of a megabyte, in several threads. Most live for milliseconds,
some as long as a slow client takes them. If each piece came from the system anew, touching its pages would take as long
as decoding. If freed ones were kept between those in use, they would add up to gigabytes.
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
    """Have Arrow use the C library's allocator, and that few heaps. Call it before Arrow is loaded.

    Pieces of 16 MiB or more come from the system and go back to it. `ARROW_DEFAULT_MEMORY_POOL` is left as it is where
    somebody has set it.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        library.mallopt(_M_ARENA_MAX, _HEAPS)


def give_freed_memory_back() -> None:
    """Give all memory back to the system that isn't in use, also what lies between pieces that are."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def leave_out_of_collections() -> None:
    """Have Python's collector pass over all objects of this moment, most of which live as long as the process."""
    gc.collect()
    gc.freeze()
