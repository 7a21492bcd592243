"""The embedded stack: Postgres, Kafka, and S3 with an Iceberg catalog, in one folder and detached from the caller.

`up` brings every part from whatever state it is in to ready, all at once; a file lock keeps two callers apart. What is
running is judged by process marks and by asking the servers, never by the state file alone.
"""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from archiver.errors import LocalStackError
from archiver.local import config_file, ports, process, state, strays
from archiver.local.endpoints import Endpoints, endpoints_of
from archiver.local.kafka import Kafka
from archiver.local.part import Part, Seat
from archiver.local.postgres import Postgres
from archiver.local.seaweedfs import SeaweedFS
from archiver.local.status import Health, PartStatus, StackStatus

PARTS: tuple[Part, ...] = (Kafka(), SeaweedFS(), Postgres())
"""Slowest first, so that it gets a core first."""

Progress = Callable[[str, str], None]
"""Told the part's title and what it does now."""

_READY_WITHIN = 60.0
_STOP_WITHIN = 20.0
_POLL = 0.1
_PORT_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What `up` found and did: the endpoints, and the parts it had to start (none: all were up already)."""

    endpoints: Endpoints
    started: tuple[str, ...]


class LocalStack:
    """The stack in one folder; cheap to make, holds no resources."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory).expanduser().resolve()
        self._state_lock = threading.Lock()
        self._state: state.StackState | None = None

    @property
    def endpoints(self) -> Endpoints:
        """The addresses of a stack that has been up at least once; raises LocalStackError where none has been."""
        known = state.load(self.directory)
        if known is None or not known.ports:
            raise LocalStackError("there is no stack in this folder; run `archiver local up`", dir=str(self.directory))
        return self._endpoints(known)

    def up(self, progress: Progress | None = None) -> Endpoints:
        """Start what does not run and return when all of it is ready; raises LocalStackError naming part and log."""
        return self.ensure(progress).endpoints

    def ensure(self, progress: Progress | None = None) -> Started:
        """The same as `up`, told with which parts had to be started."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o711)
        (self.directory / "logs").mkdir(exist_ok=True)
        with self._exclusive():
            self._state = known = state.load(self.directory) or state.draw()
            before = dict(known.ports)
            started = self._start_all(progress or _silent)
            self._settle(before)
            return Started(endpoints=self._endpoints(self._known), started=started)

    def down(self, progress: Progress | None = None) -> tuple[str, ...]:
        """Stop what runs, data kept; returns the names of the parts that ran."""
        if not (self.directory / state.FILE_NAME).exists():
            return ()
        say = progress or _silent
        with self._exclusive():
            self._state = state.load(self.directory)
            with ThreadPoolExecutor(len(PARTS)) as pool:
                ran = tuple(pool.map(lambda part: self._stop(part, say), PARTS))
        return tuple(part.name for part, was_running in zip(PARTS, ran, strict=True) if was_running)

    def status(self) -> StackStatus:
        """How every part is right now; starts nothing."""
        known = state.load(self.directory)
        if known is None:
            return StackStatus(directory=self.directory, parts=(), endpoints=None)
        with ThreadPoolExecutor(len(PARTS)) as pool:
            parts = tuple(pool.map(lambda part: self._status_of(part, known), PARTS))
        return StackStatus(
            directory=self.directory, parts=parts, endpoints=self._endpoints(known) if known.ports else None
        )

    @property
    def _known(self) -> state.StackState:
        assert self._state is not None, "the state is loaded before parts are touched"
        return self._state

    def _endpoints(self, known: state.StackState) -> Endpoints:
        return endpoints_of(self.directory, self.directory / config_file.FILE_NAME, self._seat(PARTS[0], known))

    def _seat(self, part: Part, known: state.StackState | None = None) -> Seat:
        log = self.directory / "logs" / f"{part.name}.log"
        return Seat(folder=self.directory / part.name, log=log, state=known or self._known)

    def _remember(self, change: Callable[[state.StackState], state.StackState]) -> None:
        with self._state_lock:
            self._state = change(self._known)
            state.save(self.directory, self._state)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        with (self.directory / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _start_all(self, progress: Progress) -> tuple[str, ...]:
        cancelled = threading.Event()
        with ThreadPoolExecutor(len(PARTS)) as pool:
            futures = [pool.submit(self._start, part, progress, cancelled) for part in PARTS]
            try:
                errors = [error for future in futures if (error := future.exception()) is not None]
            except BaseException:
                cancelled.set()
                raise
        if errors:
            raise errors[0]
        return tuple(part.name for part, future in zip(PARTS, futures, strict=True) if future.result())

    def _start(self, part: Part, progress: Progress, cancelled: threading.Event) -> bool:
        def say(step: str) -> None:
            progress(part.title, step)

        begun = time.monotonic()
        if self._is_up(part):
            say("already up")
            return False
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._stop(part, progress)
            self._find_ports(part, say)
            part.prepare(self._seat(part), say)
            say("starting")
            mark = process.spawn(part.launch(self._seat(part)))
            self._remember(lambda known, mark=mark: known.with_process(part.name, mark))  # type: ignore[misc]
            if self._await_ready(part, mark, cancelled):
                say(f"ready in {time.monotonic() - begun:.1f} s")
                return True
            if attempt < _PORT_ATTEMPTS and self._lost_ports(part):
                say("a port was taken in between; trying others")
                continue
            break
        raise LocalStackError(self._failure(part), log=str(self._seat(part).log))

    def _is_up(self, part: Part) -> bool:
        running = process.find(self._known.processes.get(part.name)) is not None
        return running and part.is_ready(self._seat(part))

    def _find_ports(self, part: Part, say: Callable[[str], None]) -> None:
        known = self._known.ports
        if all(name in known and ports.is_free(known[name]) for name in part.port_names):
            return
        if any(name in known for name in part.port_names):
            say("its port is taken by another program; moving to others")
        with self._state_lock:
            drawn = ports.choose(part.port_names, avoid=tuple(self._known.ports.values()))
            self._state = self._known.with_ports(drawn)
            state.save(self.directory, self._state)

    def _lost_ports(self, part: Part) -> bool:
        running = process.find(self._known.processes.get(part.name)) is not None
        return not running and not all(ports.is_free(self._known.ports[name]) for name in part.port_names)

    def _await_ready(self, part: Part, mark: process.ProcessMark, cancelled: threading.Event) -> bool:
        deadline = time.monotonic() + _READY_WITHIN
        while time.monotonic() < deadline and not cancelled.is_set():
            if part.is_ready(self._seat(part)):
                return process.find(mark) is not None
            if process.find(mark) is None:
                return False
            time.sleep(_POLL)
        return False

    def _failure(self, part: Part) -> str:
        seat = self._seat(part)
        running = process.find(self._known.processes.get(part.name)) is not None
        what = f"did not get ready within {_READY_WITHIN:.0f} s" if running else "ended while starting"
        return (
            f"{part.title} {what}. Its log ends with\n{process.tail(seat.log)}\n"
            f"Mend what it says and run `archiver local up` again: the parts that are up stay up"
        )

    def _stop(self, part: Part, progress: Progress) -> bool:
        mark = self._known.processes.get(part.name)
        stopped = process.stop(mark, with_signal=part.stop_signal, timeout=_STOP_WITHIN)
        if strays.end(self._seat(part).folder, with_signal=part.stop_signal, timeout=_STOP_WITHIN):
            stopped = True
        if stopped:
            progress(part.title, "stopped")
        if mark is not None:
            self._remember(lambda known: known.with_process(part.name, None))
        return stopped

    def _settle(self, before: dict[str, int]) -> None:
        known = self._known
        moved = {old: known.ports[name] for name, old in before.items() if known.ports[name] != old}
        remembered = config_file.refresh(self._endpoints(known), known_digest=known.config_digest, moved=moved)
        self._remember(lambda latest: replace(latest, config_digest=remembered))

    def _status_of(self, part: Part, known: state.StackState) -> PartStatus:
        mark = known.processes.get(part.name)
        running = process.find(mark)
        seat = self._seat(part, known)
        addresses = {name: f"{ports.HOST}:{known.ports[name]}" for name in part.port_names if name in known.ports}
        health: Health = "stopped" if running is None else "ready" if part.is_ready(seat) else "not answering"
        return PartStatus(
            name=part.name,
            title=part.title,
            version=part.version,
            health=health,
            pid=None if running is None else running.pid,
            started=mark.started if mark is not None and running is not None else None,
            addresses=addresses,
            log=seat.log,
        )


def _silent(part: str, step: str) -> None:
    del part, step
