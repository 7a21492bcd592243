"""Detached processes, identified by pid, start time and program."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from archiver.errors import LocalStackError

_LAUNCHER = '"$@" </dev/null >&2 & echo $!'
_INHERITED = ("PATH", "HOME", "TMPDIR", "LANG", "TZ", "JAVA_TOOL_OPTIONS")
_CLOCK_SLACK = 5.0
_POLL = 0.05
_ROTATE_AT = 64 * 1024 * 1024
_TAIL_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """`env` adds to the environment."""

    argv: tuple[str, ...]
    cwd: Path
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    """The account to run as. None means the caller's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMark:
    """`started` is in seconds since the epoch."""

    pid: int
    started: float
    program: str


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {"PATH": os.defpath, **inherited, **extra}


def spawn(launch: Launch) -> ProcessMark:
    """The server outlives the caller. Raises LocalStackError."""
    rotate(launch.log)
    with launch.log.open("ab") as log:
        # With a shell in between, init adopts the server at once: the caller has no child to reap, and no zombie stays.
        started = subprocess.run(  # noqa: S603
            ["/bin/sh", "-c", _LAUNCHER, "sh", *launch.argv],
            cwd=launch.cwd,
            env=environment(launch.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            check=True,
            user=launch.user,
            group=_group_of(launch.user),
            extra_groups=[] if launch.user else None,
        )
    program = Path(launch.argv[0]).name
    pid = int(started.stdout)
    try:
        return ProcessMark(pid=pid, started=psutil.Process(pid).create_time(), program=program)
    except psutil.NoSuchProcess as error:
        raise LocalStackError(f"{program} ended at once\n{tail(launch.log)}", log=str(launch.log)) from error


def find(mark: ProcessMark | None) -> psutil.Process | None:
    """None if it ended, or if another program has its pid."""
    if mark is None:
        return None
    try:
        process = psutil.Process(mark.pid)
        if process.status() == psutil.STATUS_ZOMBIE or abs(process.create_time() - mark.started) > _CLOCK_SLACK:
            return None
        command = process.cmdline()
    except psutil.Error:
        return None
    # Between fork and exec, the process still has the launcher's command line, and then briefly none.
    ours = not command or Path(command[0]).name in {mark.program, "sh"}
    return process if ours else None


def is_running(mark: ProcessMark | None) -> bool:
    return find(mark) is not None


def listens(mark: ProcessMark, ports: Collection[int]) -> bool:
    """True if the system doesn't report ports."""
    server = find(mark)
    if server is None:
        return False
    try:
        connections = server.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False
    return set(ports) <= {
        connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN
    }


def stop(mark: ProcessMark | None, *, with_signal: signal.Signals, timeout: float) -> bool:
    """By force after `timeout` seconds. False if it wasn't running. Raises LocalStackError."""
    process = find(mark)
    if process is None:
        return False
    children = _children(process)
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(with_signal)
        process.send_signal(signal.SIGCONT)  # a suspended process gets no other signal until then
    if not _gone_within(mark, timeout):
        for victim in (process, *children):
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
        if not _gone_within(mark, timeout):
            raise LocalStackError(f"pid {process.pid} does not end, not even by force; end it by hand")
    return True


def tail(log: Path, *, lines: int = 25) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError as error:
        return f"  (no log: {error.strerror})"
    last = [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
    return "\n".join(f"  | {line}" for line in last) or "  (the log is empty)"


def rotate(log: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > _ROTATE_AT:
            log.replace(log.with_name(f"{log.name}.1"))


def _children(process: psutil.Process) -> tuple[psutil.Process, ...]:
    with contextlib.suppress(psutil.Error):
        return tuple(process.children(recursive=True))
    return ()


def _gone_within(mark: ProcessMark | None, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_running(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def _group_of(user: str | None) -> int | None:
    if user is None:
        return None
    import pwd

    return pwd.getpwnam(user).pw_gid
