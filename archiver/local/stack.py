"""The stack in one folder, detached from the caller and locked by a file.

Process marks and answers show whether a part runs, never the state file alone.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from archiver.errors import LocalStackError
from archiver.local import config_file, ports, process, state
from archiver.local.endpoints import Endpoints, endpoints_of
from archiver.local.kafka import CLUSTER, Kafka
from archiver.local.part import StackPart
from archiver.local.part_runner import PartRunner, context_of
from archiver.local.postgres import PostgresPart
from archiver.local.seaweedfs import SeaweedFS
from archiver.local.state import StackState, StateFile
from archiver.local.status import Health, PartStatus, StackStatus


def parts_of(brokers: int) -> tuple[StackPart, ...]:
    nodes = (Kafka(node=node, nodes=brokers) for node in range(1, brokers + 1))
    return (*nodes, SeaweedFS(), PostgresPart())


PARTS: Final = parts_of(1)
BROKERS: Final = (1, CLUSTER)
"""Possible numbers of Kafka nodes."""

Progress = Callable[[str, str], None]
"""Takes a part's title and its current step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """`started` are the started parts."""

    endpoints: Endpoints
    started: tuple[str, ...]


class LocalStack:
    """The stack in one folder. Holds no resources between calls."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory).expanduser().resolve()

    @property
    def endpoints(self) -> Endpoints:
        """Raises LocalStackError if the stack was never up."""
        saved = state.load(self.directory)
        if saved is None or not _complete(saved):
            raise LocalStackError("There is no stack in this folder; run `archiver local up`", dir=str(self.directory))
        return self._endpoints(saved)

    def up(self, progress: Progress | None = None, *, brokers: int | None = None) -> Endpoints:
        """Raises LocalStackError. `brokers` (1 or 3, default 1) is for a new stack."""
        return self.ensure(progress, brokers=brokers).endpoints

    def ensure(self, progress: Progress | None = None, *, brokers: int | None = None) -> Started:
        """As `up`; also return the started parts. Raises LocalStackError."""
        if brokers not in {None, *BROKERS}:
            raise LocalStackError(f"A stack has {' or '.join(map(str, BROKERS))} brokers, not {brokers}")
        try:
            (self.directory / "logs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LocalStackError(f"This folder can't hold a stack: {error}", dir=str(self.directory)) from error
        with self._exclusive(progress or _silent):
            state_file = StateFile(self.directory)
            self._settle_brokers(state_file, brokers)
            before = dict(state_file.current.ports)
            started = self._start_all(state_file, progress or _silent)
            self._write_config(state_file, before)
            return Started(endpoints=self._endpoints(state_file.current), started=started)

    def down(self, progress: Progress | None = None, *, only: Collection[str] = ()) -> tuple[str, ...]:
        """Return the parts that ran. Data stays."""
        saved = state.load(self.directory)
        if saved is None:
            return ()
        parts = _named(parts_of(saved.brokers), only)
        say = progress or _silent
        with self._exclusive(say):
            state_file = StateFile(self.directory)
            with ThreadPoolExecutor(len(parts)) as pool:
                ran = pool.map(lambda part: self._runner(part, state_file).stop(_about(part, say)), parts)
                return tuple(part.name for part, was_running in zip(parts, ran, strict=True) if was_running)

    def status(self) -> StackStatus:
        saved = state.load(self.directory)
        if saved is None or not _complete(saved):
            return StackStatus(directory=self.directory, parts=(), endpoints=None)
        every = parts_of(saved.brokers)
        with ThreadPoolExecutor(len(every)) as pool:
            parts = tuple(pool.map(lambda part: self._status_of(part, saved), every))
        return StackStatus(directory=self.directory, parts=parts, endpoints=self._endpoints(saved))

    def _runner(self, part: StackPart, state_file: StateFile) -> PartRunner:
        return PartRunner(part=part, directory=self.directory, state_file=state_file)

    def _endpoints(self, known: StackState) -> Endpoints:
        return endpoints_of(self.directory, self.directory / config_file.FILE_NAME, known)

    @contextmanager
    def _exclusive(self, say: Progress) -> Iterator[None]:
        with (self.directory / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("stack", "waiting for another command on this folder")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _settle_brokers(self, state_file: StateFile, wanted: int | None) -> None:
        saved = state_file.current
        if wanted in {None, saved.brokers}:
            return
        if saved.ports:
            raise LocalStackError(
                f"This stack was made with {saved.brokers} broker(s), and keeps them. Use another folder for {wanted}",
                dir=str(self.directory),
            )
        state_file.change(lambda fresh: replace(fresh, brokers=wanted or fresh.brokers))

    def _start_all(self, state_file: StateFile, progress: Progress) -> tuple[str, ...]:
        cancelled = threading.Event()
        parts = parts_of(state_file.current.brokers)
        for part in parts:  # each node of a cluster must know the ports of all
            self._runner(part, state_file).reserve_ports(_about(part, progress))
        with ThreadPoolExecutor(len(parts)) as pool:
            futures = [
                pool.submit(self._runner(part, state_file).start, _about(part, progress), cancelled) for part in parts
            ]
            try:
                errors = [error for future in futures if (error := future.exception()) is not None]
            except BaseException:
                cancelled.set()
                raise
        if errors:
            raise errors[0]
        return tuple(part.name for part, future in zip(parts, futures, strict=True) if future.result())

    def _write_config(self, state_file: StateFile, before: dict[str, int]) -> None:
        saved = state_file.current
        moved = {old: saved.ports[name] for name, old in before.items() if saved.ports[name] != old}
        remembered = config_file.refresh(self._endpoints(saved), known_digest=saved.config_digest, moved=moved)
        state_file.change(lambda latest: replace(latest, config_digest=remembered))

    def _status_of(self, part: StackPart, known: StackState) -> PartStatus:
        mark = known.processes.get(part.name)
        running = process.is_running(mark)
        context = context_of(part, self.directory, known)
        health: Health = "stopped" if not running else "ready" if part.is_ready(context) else "not answering"
        return PartStatus(
            name=part.name,
            title=part.title,
            version=part.version,
            health=health,
            pid=mark.pid if mark is not None and running else None,
            started=mark.started if mark is not None and running else None,
            addresses={name: f"{ports.HOST}:{known.ports[name]}" for name in part.port_names},
            log=context.log,
        )


def _about(part: StackPart, progress: Progress) -> Callable[[str], None]:
    return lambda step: progress(part.title, step)


def _complete(known: StackState) -> bool:
    return all(name in known.ports for part in parts_of(known.brokers) for name in part.port_names)


def _named(parts: tuple[StackPart, ...], only: Collection[str]) -> tuple[StackPart, ...]:
    names = [part.name for part in parts]
    if strange := [name for name in only if name not in names]:
        raise LocalStackError(f"This stack has no part `{strange[0]}`; it has {', '.join(names)}")
    return tuple(part for part in parts if not only or part.name in only)


def _silent(part: str, step: str) -> None:
    del part, step
