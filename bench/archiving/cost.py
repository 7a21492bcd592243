"""What a process and all it has started take: CPU seconds, user and system."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One turn of one side."""

    cpu_seconds: float
    wall_seconds: float
    records: int


def cpu_seconds() -> float:
    """Of this process, its descendants, and those of them that have ended and were waited for."""
    this = psutil.Process()
    total = 0.0
    for each in (this, *this.children(recursive=True)):
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def measured(turn: Callable[[], int]) -> Cost:
    """The cost of a turn, which gives the records it archived."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    records = turn()
    return Cost(
        cpu_seconds=cpu_seconds() - cpu,
        wall_seconds=time.perf_counter() - wall,
        records=records,
    )
