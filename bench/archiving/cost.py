"""CPU seconds of a process and its descendants, ended ones included."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import psutil

Key: TypeAlias = tuple[int, float]
"""A process: its id, and when it began."""

DRIVER: Final = "driver"
JVM: Final = "JVM"
WORKERS: Final = "workers"
_STARTED_BY: Final = {DRIVER: JVM, JVM: WORKERS, WORKERS: WORKERS}
"""What a process is that came and went unseen, by what its parent is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    cpu_seconds: float
    wall_seconds: float
    records: int
    split: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCost:
    kind: str
    parent: Key | None
    own: float
    ended: float


def measured(turn: Callable[[], int]) -> Cost:
    before, wall = family(), time.perf_counter()
    records = turn()
    wall = time.perf_counter() - wall
    split = {kind: round(seconds, 2) for kind, seconds in spent(before, family()).items()}
    return Cost(cpu_seconds=sum(split.values()), wall_seconds=wall, records=records, split=split)


def family() -> dict[Key, ProcessCost]:
    this = psutil.Process()
    alive = {process.pid: process for process in (this, *this.children(recursive=True))}
    costs: dict[Key, ProcessCost] = {}
    for process in alive.values():
        try:
            times, name, parent = process.cpu_times(), process.name(), alive.get(process.ppid())
        except psutil.NoSuchProcess:
            continue
        costs[_key(process)] = ProcessCost(
            kind=DRIVER if process == this else _kind(name),
            parent=None if parent is None or process == this else _key(parent),
            own=times.user + times.system,
            ended=times.children_user + times.children_system,
        )
    return costs


def spent(before: Mapping[Key, ProcessCost], after: Mapping[Key, ProcessCost]) -> dict[str, float]:
    """Return the CPU seconds between two measurements, by kind.

    An ended process counts with its next living ancestor, unless no process waited for it.
    """
    seconds: Counter[str] = Counter({DRIVER: 0.0, JVM: 0.0, WORKERS: 0.0})
    inherited: Counter[Key] = Counter()
    kinds: dict[Key, str] = {}
    for key, was in before.items():
        if key not in after and (heir := _heir(key, before, after)) is not None:
            inherited[heir] += was.own + was.ended
            kinds[heir] = was.kind
    for key, now in after.items():
        began = before.get(key)
        seconds[now.kind] += now.own - (began.own if began else 0.0)
        unseen = now.ended - (began.ended if began else 0.0) - inherited[key]
        seconds[kinds.get(key, _STARTED_BY[now.kind])] += max(0.0, unseen)
    return dict(seconds)


def _heir(key: Key, before: Mapping[Key, ProcessCost], after: Mapping[Key, ProcessCost]) -> Key | None:
    parent = before[key].parent
    while parent is not None and parent not in after:
        parent = before[parent].parent if parent in before else None
    return parent


def _key(process: psutil.Process) -> Key:
    return process.pid, process.create_time()


def _kind(name: str) -> str:
    return JVM if name in {"java", "bash"} else WORKERS  # a shell starts the JVM
