"""A server that is stopped even if the tests are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.support.timing.eventually import eventually

TIMEOUT_S = 120.0
_GUARD = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.read()
server.terminate()
try:
    server.wait(20)
except subprocess.TimeoutExpired:
    server.kill()
    server.wait(5)
"""


@contextmanager
def guarded(
    command: Sequence[str],
    *,
    probe: str,
    log: Path,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    ready: Sequence[int] = (200, 204),
) -> Iterator[None]:
    """Yield when `probe` answers with a `ready` status."""
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-c", _GUARD, *command],
            cwd=cwd,
            env=os.environ | dict(environment or {}),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(probe, ready, server, log)
        yield
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(30)


def _wait(probe: str, ready: Sequence[int], server: subprocess.Popen[bytes], log: Path) -> None:
    def answers() -> bool:
        assert server.poll() is None, log.read_text(errors="replace")[-2000:]
        return requests.get(probe, timeout=5).status_code in ready

    eventually(
        answers,
        lambda: f"the server behind {probe}: {log.read_text(errors='replace')[-2000:]}",
        seconds=TIMEOUT_S,
        every=0.1,
        despite=(requests.RequestException,),
    )
