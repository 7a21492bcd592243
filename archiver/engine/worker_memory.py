"""Tells glibc in a Python worker to keep freed memory for the next buffer, and to return it between files."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_KEPT_BYTES: Final = 256 << 20
_LARGE_BYTES: Final = 11 << 20
"""More than the 10 MiB that pyarrow takes, and fills with zeros, for each part of an upload to S3 however short it is.

As fresh memory they cost 5 ms of CPU for each small file, a quarter of what its topic took (measured).
"""


def keep_memory(heaps: int = 1) -> None:
    """Keep freed memory for the next buffers instead of returning it. Page faults took a tenth of a task's time.

    Buffers of 11 MiB or more still come from the system and go back to it. Among the small ones they would leave holes,
    and memory would grow with each file. All threads share `heaps` heaps: each task starts new threads, and with heaps
    of their own, freed memory would stay in heaps that no later thread uses. One is enough where one thread works at a
    time, and all that is free in it can be given back. Threads that decode side by side would wait for each other's
    allocations there; of several heaps glibc gives parts back by itself, and keeps others.
    """
    with suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        library.mallopt(_M_ARENA_MAX, heaps)


def give_memory_back() -> None:
    """Return free memory to the system, so that the next file starts with as little as the first one.

    It costs a tenth of a second, mostly because fresh memory must be touched again (measured). That pays off between
    the files of a long range. It doesn't between tasks, which use the free memory again.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
