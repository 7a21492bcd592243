"""Jobs in killable processes, forked from a server."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any

import psutil

from tests.support.engine.forked import FORKED
from tests.support.timing.eventually import comes_true

_NUMBERS = count()
_POLL = 0.01
_TELLING_SECONDS = 2.0

TELLS = signal.SIGUSR1
"""Makes a job write its threads' stacks to its log."""


class Verb(StrEnum):
    ARCHIVE = "archive"
    RECONCILE = "reconcile"
    REBUILD = "rebuild"
    ORPHANS = "orphans"
    REFILL = "refill"
    COMPACT = "compact"
    EXPIRE = "expire"
    ERASE = "erase"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`fault` is ARCHIVER_FAULT; without the lease, rivals don't wait.

    `days` later for removing orphans; `topic` for refills; `expire` retires `partition` up to `before`, with `rows` at
    the edge; `erase` resumes without `where`.
    """

    config: Path
    verb: Verb = Verb.ARCHIVE
    fault: str | None = None
    spark: bool = False
    accept_gaps: bool = False
    with_lease: bool = True
    days: float = 0.0
    topic: str = ""
    partition: int = 0
    before: int = 0
    rows: bool = False
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    topic: str
    partition: int | None
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    exit_code: int
    records: int
    failures: tuple[Failure, ...]
    log: str

    @property
    def killed(self) -> bool:
        return self.exit_code == -signal.SIGKILL

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0

    @property
    def unforeseen(self) -> bool:
        if self.exit_code == 1:
            return not self.failures or any("nobody foresaw" in failure.text for failure in self.failures)
        return self.exit_code not in {0, -signal.SIGKILL, -signal.SIGTERM}

    @property
    def said(self) -> str:
        if self.killed:
            return "killed"
        if self.succeeded:
            return "succeeded"
        return ", ".join(sorted({failure.kind for failure in self.failures})) or f"exit code {self.exit_code}"


class Running:
    def __init__(self, job: Job, folder: Path) -> None:
        from tests.fault.soak import job_process

        self._base = folder / f"job-{next(_NUMBERS)}"
        self._process = FORKED.Process(target=job_process.run, args=(job, self._base), daemon=False)
        self._process.start()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()

    def goes_on(self) -> None:
        if self.alive:
            psutil.Process(self._pid).resume()

    def stops(self, seconds: float) -> bool:
        """Whether ARCHIVER_FAULT suspends it before its end."""

        def status() -> str:
            try:
                return psutil.Process(self._pid).status() if self.alive else psutil.STATUS_DEAD
            except psutil.NoSuchProcess:
                return psutil.STATUS_DEAD

        comes_true(lambda: status() in {psutil.STATUS_STOPPED, psutil.STATUS_DEAD}, seconds, every=_POLL)
        return status() == psutil.STATUS_STOPPED

    def ends(self, seconds: float) -> bool:
        self._process.join(seconds)
        return not self._process.is_alive()

    def ending(self, seconds: float) -> Ending:
        """Wait for the end. A hanging job is killed: TimeoutError has its log and position."""
        if not self.ends(seconds):
            psutil.Process(self._pid).send_signal(TELLS)
            self.ends(_TELLING_SECONDS)
            self._process.kill()
            raise TimeoutError(f"a job did not end in {seconds:.0f} s:\n{self._log()}")
        said: dict[str, Any] = {"records": 0, "failures": []}
        report = self._base.with_suffix(".json")
        if report.exists():
            said = json.loads(report.read_text())
        return Ending(
            exit_code=int(self._process.exitcode or 0),
            records=said["records"],
            failures=tuple(Failure(**failure) for failure in said["failures"]),
            log=self._log(),
        )

    @property
    def _pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def _log(self) -> str:
        log = self._base.with_suffix(".log")
        return log.read_text(errors="replace")[-4_000:] if log.exists() else ""


@contextmanager
def running(job: Job, folder: Path) -> Iterator[Running]:
    started = Running(job, folder)
    try:
        yield started
    finally:
        if started.alive:
            started.kill()
