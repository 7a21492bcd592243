"""The memory of a worker, measured by the system in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

TASKS = """
import ctypes, resource
from pathlib import Path
from archiver.engine.worker_memory import give_memory_back, keep_memory

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20

keep_memory()
before = held()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
parts = [libc.malloc(1 << 20) for _ in range(200)]
for part in parts:
    ctypes.memset(part, 1, 1 << 20)
for part in parts[:-1]:
    libc.free(part)
kept = held() - before
give_memory_back()
print(kept, held() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_memory_is_kept_until_it_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", TASKS], capture_output=True, text=True, check=True, timeout=60)
    kept, left = map(int, done.stdout.split())
    assert kept >= 150
    assert left <= 20
