"""Flipped bits in Parquet footers."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

Flip: TypeAlias = tuple[int, int]
"""The position of a byte in the file, and the number of its bit."""

ENDING = 8
CHECKSUM = 12


def footer_start(data: bytes) -> int:
    end = len(data) - ENDING
    return end - int.from_bytes(data[end : end + 4], "little")


def all_flips(data: bytes) -> list[Flip]:
    return [(at, bit) for at in range(footer_start(data) - CHECKSUM, len(data)) for bit in range(8)]


def every_footer_bit(data: bytes) -> list[Flip]:
    return [(at, bit) for at in range(footer_start(data), len(data)) for bit in range(8)]


def some_flips(data: bytes, count: int = 150) -> list[Flip]:
    """Includes bits that make columns optional or repeated."""
    start, end = footer_start(data), len(data) - ENDING
    repetitions = [at + 1 for at in range(start, end - 1) if data[at] in (0x25, 0x35) and data[at + 1] in (0, 2, 4)]
    dice = random.Random(7)
    drawn = [(dice.randrange(start, len(data)), dice.randrange(8)) for _ in range(count)]
    return [(at, bit) for at in repetitions for bit in (1, 2)] + drawn


def without_checksum(data: bytes) -> bytes:
    start = footer_start(data)
    return data[: start - CHECKSUM] + data[start:]


def judged(path: Path, flips: Sequence[Flip], judge: Callable[[], int]) -> list[int]:
    """Judges are in a process that flips may end, and return numbers below 256.

    Raises AssertionError if that process ends early, as by C++ exceptions.
    """
    data = path.read_bytes()
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(source)
            for at, bit in flips:
                hurt = bytearray(data)
                hurt[at] ^= 1 << bit
                path.write_bytes(hurt)
                os.write(sink, bytes((judge(),)))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(sink)
    with os.fdopen(source, "rb") as stream:
        result = list(stream.read())
    _, status = os.waitpid(child, 0)
    path.write_bytes(data)
    assert os.waitstatus_to_exitcode(status) == 0, f"the process ended at {flips[len(result)]}"
    return result
