"""Processes of `archiver serve kafka` in one cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.support.servers.free_ports import free_port


class Nodes:
    def __init__(self, config: Path, count: int, *, log: Path | None = None) -> None:
        self._config = config
        self._log = log
        self.ports = [free_port() for _ in range(count)]
        self._running: dict[int, subprocess.Popen[str]] = {}

    def __enter__(self) -> Self:
        with ThreadPoolExecutor(len(self.ports)) as pool:
            list(pool.map(self.start, range(len(self.ports))))
        return self

    def __exit__(self, *_: object) -> None:
        for item in self._running.values():
            item.terminate()
        for item in self._running.values():
            assert ended(item) == 128 + signal.SIGTERM

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def pid(self, index: int) -> int:
        return self._running[index].pid

    def start(self, index: int) -> None:
        command = [sys.executable, "-m", "archiver", "serve", "kafka", "--json", "--config", str(self._config)]
        listen = ["--listen", f"127.0.0.1:{self.ports[index]}"]
        with ExitStack() as files:
            errors = None if self._log is None else files.enter_context(self._log.open("ab"))
            process = subprocess.Popen([*command, *listen], stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "listening"
        self._running[index] = process

    def runs(self, index: int) -> bool:
        return index in self._running and self._running[index].poll() is None

    def kill(self, index: int) -> None:
        process = self._running.pop(index)
        process.kill()
        ended(process)

    def pause(self, index: int) -> None:
        os.kill(self._running[index].pid, signal.SIGSTOP)

    def go_on(self, index: int) -> None:
        os.kill(self._running[index].pid, signal.SIGCONT)


def ended(process: subprocess.Popen[str]) -> int:
    with process:
        return process.wait(20)
