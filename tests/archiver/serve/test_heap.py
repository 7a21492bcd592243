"""A process gives freed memory back, whatever is still in use beside it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

MIB = 1 << 20
PIECES = 300
PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from archiver.serve.heap import give_freed_memory_back, share_one_allocator
share_one_allocator()
import numpy as np
import psutil
import pyarrow as pa

def piece(number):
    return np.ones((1 << 20) - 4096 * (number % 50), np.uint8)

with ThreadPoolExecutor(4) as pool:
    for _ in range(3):
        held = list(pool.map(piece, range(int(sys.argv[1]))))
        most = psutil.Process().memory_info().rss
        held = held[::20]
    give_freed_memory_back()
    print(pa.default_memory_pool().backend_name, most, psutil.Process().memory_info().rss)
"""


def measured(pieces: int, **environment: str) -> tuple[str, int, int]:
    """Arrow's pool, and how much memory was held at most and in the end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(pieces)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    pool, most, left = done.stdout.split()
    return pool, int(most), int(left)


def test_what_is_freed_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    _, nothing, _ = measured(20)
    pool, most, left = measured(PIECES)
    assert pool == "system"
    assert most - nothing > PIECES * MIB // 2
    assert left - nothing < PIECES * MIB // 5


def test_a_pool_that_somebody_chose_is_left() -> None:
    assert measured(1, ARROW_DEFAULT_MEMORY_POOL="mimalloc")[0] == "mimalloc"
