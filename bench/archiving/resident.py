"""Peak memory of a process and its descendants (Linux)."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PAUSE = 0.2
JVM = "java"


@dataclass(kw_only=True)
class Peaks:
    """`proportional` counts shared pages once. `split` are its parts by kind of process, `alone` each kind's peak."""

    proportional: int = 0
    resident: int = 0
    split: dict[str, int] = field(default_factory=dict)
    alone: dict[str, int] = field(default_factory=dict)
    over_time: list[tuple[float, int]] = field(default_factory=list)

    def look(self, top: psutil.Process, at: float) -> None:
        split, resident = _held(top)
        total = sum(split.values())
        if total > self.proportional:
            self.proportional, self.split = total, split
        self.resident = max(self.resident, resident)
        for kind, size in split.items():
            self.alone[kind] = max(self.alone.get(kind, 0), size)
        self.over_time.append((round(at, 1), total))


def watch(process: subprocess.Popen[str]) -> Peaks:
    peaks, started = Peaks(), time.monotonic()
    top = psutil.Process(process.pid)
    while process.poll() is None:
        peaks.look(top, time.monotonic() - started)
        time.sleep(PAUSE)
    return peaks


@contextmanager
def watched(pid: int) -> Iterator[Peaks]:
    peaks, started, over = Peaks(), time.monotonic(), threading.Event()
    top = psutil.Process(pid)

    def look() -> None:
        while not over.wait(PAUSE):
            peaks.look(top, time.monotonic() - started)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield peaks
    finally:
        over.set()
        watcher.join()


def _held(top: psutil.Process) -> tuple[dict[str, int], int]:
    split: dict[str, int] = {}
    resident = 0
    try:
        family = (top, *top.children(recursive=True))
    except psutil.NoSuchProcess:
        return split, resident
    for process in family:
        rollup = _rollup(process.pid)
        if rollup:
            kind = _kind(process, top)
            split[kind] = split.get(kind, 0) + rollup["Pss"]
            resident += rollup["Rss"]
    return split, resident


def _kind(process: psutil.Process, top: psutil.Process) -> str:
    if process == top:
        return "driver"
    try:
        return "JVM" if process.name() == JVM else "workers"
    except psutil.NoSuchProcess:
        return "workers"


def _rollup(pid: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}
