"""A process returns freed memory."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref

import pytest

from archiver.serve.heap import MOST_PUT_OFF, Collections

MIB = 1 << 20
PIECES = 300
PROGRAM = """
import sys
import weakref
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


def test_collections_wait_for_rest_for_a_bounded_time() -> None:
    busy = True
    collections = Collections(lambda: busy)
    assert not any(collections.collect_if_due() for _ in range(MOST_PUT_OFF))
    cycle = _Cycle()
    gone = weakref.ref(cycle)
    del cycle
    assert collections.collect_if_due()
    assert gone() is None
    assert not collections.collect_if_due(), "it is put off as often again"
    busy = False
    assert collections.collect_if_due()


class _Cycle:
    def __init__(self) -> None:
        self.self = self
