"""Time that work takes of one core: what a crowded machine adds is left out."""

from __future__ import annotations

import time
from collections.abc import Callable


def spent(run: Callable[[], object], rounds: int = 3) -> float:
    """Seconds of this thread in the best round."""
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        run()
        best = min(best, time.thread_time() - start)
    return best
