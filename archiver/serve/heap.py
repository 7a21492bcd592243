"""Makes allocators reuse freed memory and return the rest; times collections.

Buffers of a megabyte come and go in several threads. Without reuse, touching new pages takes as long as decoding;
without returning, free pages add up to gigabytes.

Python's collector stops all threads.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable
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
_YOUNG: Final = (700, 10)
"""Python's own thresholds for objects that were made since the last collection, or the last but ten."""
_NEVER: Final = 1 << 30
MOST_PUT_OFF: Final = 12


def share_one_allocator() -> None:
    """Use malloc in Arrow, with few arenas. Call this before Arrow is loaded.

    Blocks of 16 MiB or more are returned at once.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        library.mallopt(_M_ARENA_MAX, _HEAPS)


def give_freed_memory_back() -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def leave_out_of_collections() -> None:
    """Most present objects live as long as the process. Other old ones are collected by `Collections`."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_YOUNG, _NEVER)


class Collections:
    """Frees cycles of old objects."""

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        self._is_busy = is_busy
        self._put_off = 0

    def collect_if_due(self) -> bool:
        if self._is_busy() and self._put_off < MOST_PUT_OFF:
            self._put_off += 1
            return False
        self._put_off = 0
        gc.collect()
        return True
