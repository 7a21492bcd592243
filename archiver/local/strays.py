"""Finds and ends servers of a stack whose process mark was lost, by their working folder, which is theirs alone."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

import psutil

_PROGRAMS = frozenset({"java", "postgres", "weed"})
"""Only these programs are ours. A shell or an editor in the folder is somebody else's."""

_POLL = 0.1


def find(folder: Path) -> tuple[psutil.Process, ...]:
    """Find the running servers whose working folder is `folder`. None if the system doesn't tell."""
    return tuple(process for process in psutil.process_iter() if _serves_from(process, str(folder)))


def end(folder: Path, *, with_signal: signal.Signals, timeout: float) -> bool:
    """End the servers whose working folder is `folder`, by force after `timeout` seconds.

    Returns whether there were any.
    """
    found = find(folder)
    for server in found:
        with contextlib.suppress(psutil.Error):
            server.send_signal(with_signal)
    deadline = time.monotonic() + timeout
    left = found
    while left and time.monotonic() < deadline:
        left = find(folder)
        time.sleep(_POLL if left else 0)
    for server in left:
        with contextlib.suppress(psutil.Error):
            server.kill()
    return bool(found)


def _serves_from(process: psutil.Process, folder: str) -> bool:
    try:
        return process.name() in _PROGRAMS and process.cwd() == folder and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):
        return False
