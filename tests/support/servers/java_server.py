"""A server in Java beside the stack: small, fast to start, and gone at the end, whatever kills this process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import requests

from archiver.local.java import find_java

TIMEOUT_S = 120.0
_FRUGAL = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_GUARD = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.read()
server.terminate()
server.wait()
"""


@contextmanager
def java_server(
    *arguments: str, probe: str, log: Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """`java` with these arguments while the block runs, which begins when the url `probe` answers."""
    command = [sys.executable, "-c", _GUARD, find_java().executable, *_FRUGAL, *arguments]
    with log.open("wb") as output:
        settings = os.environ | dict(environment or {})
        server = subprocess.Popen(
            command, cwd=cwd, env=settings, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _wait(probe, server, log)
        yield
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(30)


def _wait(probe: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if requests.get(probe, timeout=5).ok:
                return
        except requests.RequestException:
            pass
        time.sleep(0.1)
    raise TimeoutError(f"the server behind {probe} did not start: {log.read_text(errors='replace')[-2000:]}")
