"""Ends servers whose process mark was lost; finds them by working folder."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

import psutil

_PROGRAMS = frozenset({"java", "postgres", "weed"})
"""Only these programs belong to the stack, not a shell or an editor in the folder."""

_POLL = 0.1


def find(folder: Path) -> tuple[psutil.Process, ...]:
    return tuple(process for process in psutil.process_iter() if _serves_from(process, str(folder)))


def end(folder: Path, *, with_signal: signal.Signals, timeout: float) -> bool:
    """By force after `timeout` seconds. False if there were none."""
    servers = find(folder)
    for server in servers:
        with contextlib.suppress(psutil.Error):
            server.send_signal(with_signal)
    deadline = time.monotonic() + timeout
    left = servers
    while left and time.monotonic() < deadline:
        left = find(folder)
        time.sleep(_POLL if left else 0)
    for server in left:
        with contextlib.suppress(psutil.Error):
            server.kill()
    return bool(servers)


def _serves_from(process: psutil.Process, folder: str) -> bool:
    try:
        return process.name() in _PROGRAMS and process.cwd() == folder and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):
        return False
