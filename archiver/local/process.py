"""Detached server processes: started in a session of their own, recognised later, stopped by pid.

A pid alone proves nothing, since systems reuse them: a process is ours only if its start time and program are those
that were recorded when it was launched.
"""

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
    """How a server is started: its command, folder, log, and what its environment has beyond the usual."""

    argv: tuple[str, ...]
    cwd: Path
    log: Path
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    """The account to run as; None for the caller's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMark:
    """What tells one process from every other: pid, start time (seconds since the epoch) and program name."""

    pid: int
    started: float
    program: str


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of servers: a few of the caller's variables, so that nothing else steers them, and `extra`."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {"PATH": os.defpath, **inherited, **extra}


def spawn(launch: Launch) -> ProcessMark:
    """Start a server that survives the caller and return its mark; raises LocalStackError if it cannot even start."""
    rotate(launch.log)
    with launch.log.open("ab") as log:
        # A shell in between hands the server over to init at once: no zombie and no child for the caller to reap.
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
    """The living process that `mark` names; None if it ended or the pid now belongs to another program."""
    if mark is None:
        return None
    try:
        process = psutil.Process(mark.pid)
        if process.status() == psutil.STATUS_ZOMBIE or abs(process.create_time() - mark.started) > _CLOCK_SLACK:
            return None
        command = process.cmdline()
    except psutil.Error:
        return None
    # Between fork and exec the launcher's command line still shows, and for a moment after it none.
    ours = not command or Path(command[0]).name in {mark.program, "sh"}
    return process if ours else None


def is_running(mark: ProcessMark | None) -> bool:
    """Whether the process that `mark` names lives."""
    return find(mark) is not None


def listens(mark: ProcessMark, ports: Collection[int]) -> bool:
    """Whether the process itself listens on all of these TCP ports; True where the system does not tell."""
    server = find(mark)
    if server is None:
        return False
    try:
        found = server.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return True
    except psutil.Error:
        return False
    return set(ports) <= {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN}


def stop(mark: ProcessMark | None, *, with_signal: signal.Signals, timeout: float) -> bool:
    """End the process that `mark` names, by force after `timeout` seconds; False if it was not running."""
    process = find(mark)
    if process is None:
        return False
    children = _children(process)
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(with_signal)
        process.send_signal(signal.SIGCONT)  # a suspended process hears nothing before
    if not _gone_within(mark, timeout):
        for victim in (process, *children):
            with contextlib.suppress(psutil.NoSuchProcess):
                victim.kill()
        if not _gone_within(mark, timeout):
            raise LocalStackError(f"pid {process.pid} does not end, not even by force; end it by hand")
    return True


def tail(log: Path, *, lines: int = 25) -> str:
    """The last lines of a log that say anything, indented for an error message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError as error:
        return f"  (no log: {error.strerror})"
    last = [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
    return "\n".join(f"  | {line}" for line in last) or "  (the log is empty)"


def rotate(log: Path) -> None:
    """Set a log that grew large aside as `<name>.1`, replacing the one before."""
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
