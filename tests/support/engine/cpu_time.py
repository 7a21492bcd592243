"""CPU time without other processes' share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path


def spent(run: Callable[[], object], rounds: int = 3) -> float:
    """Return the least CPU seconds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        run()
        best = min(best, time.thread_time() - start)
    return best


def spent_by_threads(run: Callable[[], object], threads: int, times: int) -> float:
    """Return seconds less waits for a core."""
    start = threading.Barrier(threads)
    taken: list[float] = []

    def work() -> None:
        start.wait()
        began, waited = time.perf_counter(), waited_for_a_core()
        for _ in range(times):
            run()
        taken.append(time.perf_counter() - began - (waited_for_a_core() - waited))

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return max(taken)


def waited_for_a_core() -> float:
    """0 except on Linux."""
    path = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    return int(path.read_text().split()[1]) / 1e9 if path.exists() else 0.0
