"""Servers of a stack whose process mark was lost: found by their working folder, which no other program has."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

import psutil


def find(folder: Path) -> tuple[psutil.Process, ...]:
    """The living processes whose working folder is `folder`; none where the system does not tell."""
    wanted = str(folder)
    found = []
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if candidate.cwd() == wanted and candidate.status() != psutil.STATUS_ZOMBIE and not _is_shell(candidate):
                found.append(candidate)
    return tuple(found)


def end(folder: Path, *, with_signal: signal.Signals, timeout: float) -> bool:
    """End the processes whose working folder is `folder`, by force after `timeout` seconds; whether there were any."""
    victims = find(folder)
    for victim in victims:
        with contextlib.suppress(psutil.Error):
            victim.send_signal(with_signal)
    deadline = time.monotonic() + timeout
    while (left := find(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for victim in left:
        with contextlib.suppress(psutil.Error):
            victim.kill()
    return bool(victims)


def _is_shell(candidate: psutil.Process) -> bool:
    """Somebody's shell or editor standing in the folder is no server of ours."""
    return candidate.name() not in {"postgres", "java", "weed"}
