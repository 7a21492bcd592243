"""Runs a command in a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.terminal.screen import Screen

ROOT = Path(__file__).parents[3]
ARCHIVER = (sys.executable, "-m", "archiver")
_TIMEOUT = 120.0
_UNSET = ("ARCHIVER_CONFIG", "ARCHIVER_OUTPUT", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TTY_COMPATIBLE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    written: str
    screen: Screen
    frames: tuple[str, ...]
    exit_code: int

    @property
    def text(self) -> str:
        return self.screen.text

    @property
    def flat(self) -> str:
        return " ".join(self.text.split())


def run(
    command: Sequence[str],
    *,
    columns: int,
    environment: Mapping[str, str] | None = None,
    timeout: float = _TIMEOUT,
    on_frame: Callable[[int, int, str], None] | None = None,
) -> Seen:
    """`on_frame` gets process id, descriptor for keys, and screen after each output."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=terminal_environment(environment or {}),
        start_new_session=True,
    )
    os.close(theirs)
    screen, written, frames = Screen(columns), [], []
    deadline = time.monotonic() + timeout
    try:
        for piece in _pieces(ours, deadline):
            written.append(piece)
            screen.feed(piece)
            frames.append(screen.text)
            if on_frame is not None:
                on_frame(process.pid, ours, screen.text)
        exit_code = process.wait(max(0.1, deadline - time.monotonic()))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(ours)
    return Seen(written="".join(written), screen=screen, frames=tuple(frames), exit_code=exit_code)


def run_elsewhere(
    command: Sequence[str], environment: Mapping[str, str] | None = None, timeout: float = _TIMEOUT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=terminal_environment(environment or {}),
        timeout=timeout,
        check=False,
    )


def terminal_environment(more: Mapping[str, str]) -> dict[str, str]:
    ours = {
        name: value
        for name, value in os.environ.items()
        if name not in _UNSET and not name.startswith(("PYTEST", "COV", "TTY_", "_TYPER"))
    }
    paths = os.pathsep.join(filter(None, (str(ROOT), ours.get("PYTHONPATH"))))
    return ours | {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONPATH": paths} | dict(more)


def _pieces(ours: int, deadline: float) -> Iterator[str]:
    rest = b""
    while True:
        ready, _, _ = select.select([ours], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError(rest)
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux says so when the last writer has closed it
            return
        if not piece:
            return
        whole = rest + piece
        text = whole.decode(errors="ignore")
        rest = whole[len(text.encode()) :]
        if _is_open(text):  # a sequence that isn't complete yet
            cut = text.rindex("\x1b")
            text, rest = text[:cut], text[cut:].encode() + rest
        if text:
            yield text


def _is_open(text: str) -> bool:
    last = text.rfind("\x1b")
    return last >= 0 and not any(character.isalpha() or character in "=>\x07" for character in text[last + 1 :])
