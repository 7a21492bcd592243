"""The embedded stack's servers, ended, suspended and brought back one by one."""

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
    """The servers of the stack in a folder, by the names of its parts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def end(self, server: str, *, killed: bool) -> None:
        """SIGKILL, or the signal that ends it in good order; it is gone on return."""
        process = self._process(server)
        children = process.children(recursive=True)
        (part,) = (part for part in parts_of(self._state.brokers) if part.name == server)
        process.send_signal(signal.SIGKILL if killed else part.stop_signal)
        _, alive = psutil.wait_procs([process, *children], timeout=_STOP_WITHIN)
        for item in alive:
            with suppress(psutil.NoSuchProcess):
                item.kill()

    def suspend(self, server: str) -> None:
        """SIGSTOP for all its processes."""
        for item in self._family(server):
            with suppress(psutil.NoSuchProcess):
                item.suspend()

    def resume(self, server: str) -> None:
        """SIGCONT for all its processes."""
        for item in self._family(server):
            with suppress(psutil.NoSuchProcess):
                item.resume()

    def up(self) -> float:
        """Start what doesn't run; how long that took."""
        started = time.monotonic()
        LocalStack(self._folder).up()
        return time.monotonic() - started

    @property
    def brokers(self) -> tuple[str, ...]:
        """The parts that are Kafka."""
        return tuple(part.name for part in parts_of(self._state.brokers) if isinstance(part, Kafka))

    def log_folder(self, broker: str, topic: str, partition: int) -> Path:
        """Where a broker keeps a partition."""
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
