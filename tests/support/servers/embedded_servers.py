"""Ends, suspends and restarts the embedded stack's servers."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from archiver.local import LocalStack, state
from archiver.local.kafka import Kafka
from archiver.local.stack import parts_of

_STOP_WITHIN = 30.0


class Servers:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def end(self, server: str, *, killed: bool) -> None:
        process = self._process(server)
        children = process.children(recursive=True)
        (part,) = (part for part in parts_of(self._state.brokers) if part.name == server)
        process.send_signal(signal.SIGKILL if killed else part.stop_signal)
        _, alive = psutil.wait_procs([process, *children], timeout=_STOP_WITHIN)
        for item in alive:
            with suppress(psutil.NoSuchProcess):
                item.kill()

    def suspend(self, server: str) -> None:
        for item in self._family(server):
            with suppress(psutil.NoSuchProcess):
                item.suspend()

    def resume(self, server: str) -> None:
        for item in self._family(server):
            with suppress(psutil.NoSuchProcess):
                item.resume()

    def up(self) -> float:
        started = time.monotonic()
        LocalStack(self._folder).up()
        return time.monotonic() - started

    @property
    def brokers(self) -> tuple[str, ...]:
        return tuple(part.name for part in parts_of(self._state.brokers) if isinstance(part, Kafka))

    def log_folder(self, broker: str, topic: str, partition: int) -> Path:
        return self._folder / broker / "data" / f"{topic}-{partition}"

    @property
    def _state(self) -> state.StackState:
        existing = state.load(self._folder)
        assert existing is not None
        return existing

    def _process(self, server: str) -> psutil.Process:
        return psutil.Process(self._state.processes[server].pid)

    def _family(self, server: str) -> list[psutil.Process]:
        process = self._process(server)
        return [process, *process.children(recursive=True)]
