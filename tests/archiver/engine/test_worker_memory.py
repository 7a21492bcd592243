"""Memory of a worker process."""

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


PARTS = """
import ctypes, resource, sys
from archiver.engine.worker_memory import keep_memory

keep_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

def take(size):
    part = libc.malloc(size)
    ctypes.memset(part, 0, size)
    libc.free(part)

size = int(sys.argv[1]) << 20
take(size)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    take(size)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc")
@pytest.mark.parametrize(("mebibytes", "is_kept"), [(10, True), (12, False)])
def test_a_part_of_an_upload_finds_the_memory_of_the_one_before(mebibytes: int, is_kept: bool) -> None:
    command = [sys.executable, "-c", PARTS, str(mebibytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert (int(done.stdout) < 100) == is_kept, f"{done.stdout} pages were new"


THREADS = """
import ctypes, sys, threading
from pathlib import Path
from archiver.engine.worker_memory import keep_memory

keep_memory(int(sys.argv[1]))
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
all_there, found = threading.Barrier(8), set()

def allocate():
    place = libc.malloc(4096)
    found.add(place >> 26)  # a heap of a thread lies in 64 MiB of its own
    all_there.wait()

threads = [threading.Thread(target=allocate) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(len(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc")
@pytest.mark.parametrize("heaps", [1, 3])
def test_threads_share_so_many_heaps(heaps: int) -> None:
    command = [sys.executable, "-c", THREADS, str(heaps)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) == heaps
