"""Measures the CPU seconds (user and system) of a process and all processes that it started."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one turn of one side. `split` has the CPU seconds by kind of process."""

    cpu_seconds: float
    wall_seconds: float
    records: int
    split: dict[str, float]


def cpu_seconds() -> dict[str, float]:
    """Return the CPU seconds of this process (`driver`) and of its descendants, by program.

    Descendants that ended are counted if somebody waited for them.
    """
    this = psutil.Process()
    found: dict[str, float] = {}
    for each in (this, *this.children(recursive=True)):
        try:
            times, name = each.cpu_times(), "driver" if each == this else each.name()
        except psutil.NoSuchProcess:
            continue
        spent = times.user + times.system + times.children_user + times.children_system
        found[name] = found.get(name, 0.0) + spent
    return found


def measured(turn: Callable[[], int]) -> Cost:
    """Measure the cost of a turn. The turn returns how many records it archived."""
    before, wall = cpu_seconds(), time.perf_counter()
    records = turn()
    wall = time.perf_counter() - wall
    split = {name: round(spent - before.get(name, 0.0), 2) for name, spent in cpu_seconds().items()}
    return Cost(cpu_seconds=sum(split.values()), wall_seconds=wall, records=records, split=split)
