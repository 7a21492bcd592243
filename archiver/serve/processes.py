"""Several processes as one server: each is a node with its port, restarted when it dies."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Final

from archiver.config import Config
from archiver.config.quantities import bytes_text
from archiver.errors import ConfigError

_LOG = logging.getLogger(__name__)
_LEAST_CACHE: Final = 1 << 20
_FIRST_DELAY: Final = 1.0
_MOST_DELAY: Final = 30.0
_STEADY_SECONDS: Final = 60.0
"""A process that lived this many seconds restarts after the shortest delay."""
_GRACE_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.5
_HIGHEST_PORT: Final = 0xFFFF


def share(config: Config, index: int, count: int) -> Mapping[str, str]:
    """Return a process's environment: divided memory, numbered ports and node ids."""
    serve = config.serve
    keys = {
        "ARCHIVER__SERVE__LISTEN": shifted(serve.listen, index, "serve.listen"),
        "ARCHIVER__SERVE__CACHE_SIZE": bytes_text(max(_LEAST_CACHE, serve.cache_size // count)),
        "ARCHIVER__SERVE__DISK_CACHE": bytes_text(serve.disk_cache // count),
        "ARCHIVER__SERVE__RESPONSE_MEMORY": bytes_text(max(_LEAST_CACHE, serve.response_memory // count)),
    }
    if serve.advertise is not None:
        keys["ARCHIVER__SERVE__ADVERTISE"] = shifted(serve.advertise, index, "serve.advertise")
    if serve.node_id is not None:
        keys["ARCHIVER__SERVE__NODE_ID"] = str(serve.node_id + index)
    if serve.metrics is not None:
        keys["ARCHIVER__SERVE__METRICS"] = shifted(serve.metrics, index, "serve.metrics")
    return keys


def shifted(address: str, by: int, key: str) -> str:
    """Port 0 stays. Raises ConfigError above 65535."""
    host, _, port = address.rpartition(":")
    if int(port) == 0:
        return address
    if int(port) + by > _HIGHEST_PORT:
        raise ConfigError("there are no ports for so many processes: each takes the next one", key=key, address=address)
    return f"{host}:{int(port) + by}"


@dataclass(slots=True)
class _Slot:
    process: BaseProcess | None = None
    began: float = 0.0
    delay: float = _FIRST_DELAY
    due: float = 0.0
    starts: int = 0


class Processes:
    """Runs `work` with a number in each process, until a signal."""

    def __init__(
        self,
        work: Callable[..., None],
        count: int,
        *args: Any,
        gives_up: int = 2,
        first_delay: float = _FIRST_DELAY,
        grace: float = _GRACE_SECONDS,
    ) -> None:
        """If a first start exits with `gives_up`, all end."""
        self._work = work
        self._args = args
        self._gives_up = gives_up
        self._first_delay = first_delay
        self._grace = grace
        self._context = multiprocessing.get_context("spawn")
        self._slots = [_Slot() for _ in range(count)]
        self._signal = 0

    def run(self) -> int:
        """Return the ending signal, or minus the exit code of a failed start."""
        before = {number: signal.signal(number, self._asked) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while not self._signal:
                self._start_due()
                running = [slot.process.sentinel for slot in self._slots if slot.process is not None]
                wait(running, timeout=_LOOK_SECONDS)
                if self._look():
                    return -self._gives_up
            return self._signal
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)

    @property
    def pids(self) -> tuple[int | None, ...]:
        return tuple(None if slot.process is None else slot.process.pid for slot in self._slots)

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        self._signal = number

    def _start_due(self) -> None:
        now = time.monotonic()
        for number, slot in enumerate(self._slots):
            if slot.process is None and now >= slot.due:
                slot.process = self._context.Process(target=self._work, args=(number, *self._args))
                slot.process.start()
                slot.began = now
                slot.starts += 1

    def _look(self) -> bool:
        now = time.monotonic()
        for number, slot in enumerate(self._slots):
            process = slot.process
            if process is None or process.exitcode is None:
                continue
            code = process.exitcode
            process.close()
            slot.process = None
            if code == self._gives_up and slot.starts == 1:
                return True
            slot.delay = self._first_delay if now - slot.began > _STEADY_SECONDS else slot.delay
            if slot.starts == 1:
                slot.delay = self._first_delay
            slot.due = now + slot.delay
            if not self._signal:
                how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
                _LOG.warning("process %d %s, and starts again in %.0f s", number, how, slot.delay)
            slot.delay = min(_MOST_DELAY, 2 * slot.delay)
        return False

    def _end(self) -> None:
        running = [slot.process for slot in self._slots if slot.process is not None]
        for process in running:
            process.terminate()
        until = time.monotonic() + self._grace
        for process in running:
            process.join(max(0.0, until - time.monotonic()))
            if process.exitcode is None:
                _LOG.warning("process %s didn't end in time, and is killed", process.pid)
                process.kill()
                process.join()
            process.close()
