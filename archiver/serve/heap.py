"""Tells the allocators of a server's process to give freed memory back, so that it holds what it uses and no more.

Batches, columns and files' bytes come and go in pieces of a megabyte, in several threads, and live for milliseconds or
as long as a slow client takes them. Allocators that keep such pieces for later keep gigabytes.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 256 << 10
_KEPT_BYTES: Final = 16 << 20
_HEAPS: Final = 2


def give_freed_memory_back() -> None:
    """Have Arrow use the C library's allocator, and that return large pieces at once. Call it before Arrow is loaded.

    `ARROW_DEFAULT_MEMORY_POOL` is left as it is where somebody has set it.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        library.mallopt(_M_ARENA_MAX, _HEAPS)
