"""How long threads take for their work, other processes' share of the cores left out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path


def seconds(run: Callable[[], object], threads: int, times: int) -> float:
    """Time until every thread has done the work `times` times, less the time it stood in line for a core."""
    start = threading.Barrier(threads)
    taken: list[float] = []

    def work() -> None:
        start.wait()
        began, waited = time.perf_counter(), in_line()
        for _ in range(times):
            run()
        taken.append(time.perf_counter() - began - (in_line() - waited))

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return max(taken)


def in_line() -> float:
    """Seconds that this thread could have run, had a core been free: what other processes cost it (Linux)."""
    path = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    return int(path.read_text().split()[1]) / 1e9 if path.exists() else 0.0
