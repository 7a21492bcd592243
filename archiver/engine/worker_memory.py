"""What a Python worker's C library does with freed memory: used again within a file, given back after it (glibc)."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_KEPT_BYTES: Final = 256 << 20
_LARGE_BYTES: Final = 8 << 20


def keep_memory() -> None:
    """Use freed buffers again instead of giving them back: page faults were a tenth of a task's work.

    Large ones come from the system and go back to it: between the others they would leave holes that files add to.
    All threads from one heap: else each task's, being new ones, leave theirs to one that nobody goes back to.
    """
    with suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        library.mallopt(_M_ARENA_MAX, 1)


def give_memory_back() -> None:
    """Return what is free to the system: the next file or task starts as the first did, and an idle worker is small.

    What they leave behind would grow for as long as there are more of them: 70 MiB over a dozen tasks (measured).
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
