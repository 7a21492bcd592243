"""What a Python worker's C library (glibc) does with freed memory: use it again; give it back between files."""

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
    """Return what is free to the system, so that the next file begins as the first did.

    It costs a tenth of a second, mostly of touching fresh memory again: worth it between the files of a long range, not
    between the tasks of a run, which begin with what is free (measured).
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
