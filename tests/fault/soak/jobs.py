"""Jobs in processes of their own, to be killed: forked from one server that has everything imported already."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any

import psutil

from tests.support.engine.forked import FORKED

_NUMBERS = count()
_POLL = 0.01
_TELLING_SECONDS = 2.0

TELLS = signal.SIGUSR1
"""Has a job write to its log where each of its threads stands."""


class Verb(StrEnum):
    """What a job does."""

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
    """A job to run: `fault` is for ARCHIVER_FAULT; without the lease, rivals don't wait for each other.

    Removing orphans believes that it is so many `days` later; a refill is of one `topic`. So is `expire`, which retires
    a `partition` up to an offset, with `rows` at the edge, and `erase`, which goes on where there is no `where`.
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
    """What a job said of a topic, or of a partition."""

    topic: str
    partition: int | None
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a job ended: its exit code (negative: the signal), what it archived, and what it said."""

    exit_code: int
    records: int
    failures: tuple[Failure, ...]
    log: str

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.exit_code == -signal.SIGKILL

    @property
    def succeeded(self) -> bool:
        """Whether it did all it was to do."""
        return self.exit_code == 0

    @property
    def unforeseen(self) -> bool:
        """Whether it failed without saying why in the archiver's own errors."""
        if self.exit_code == 1:
            return not self.failures or any("nobody foresaw" in each.text for each in self.failures)
        return self.exit_code not in {0, -signal.SIGKILL, -signal.SIGTERM}

    @property
    def said(self) -> str:
        """In one word or few."""
        if self.killed:
            return "killed"
        if self.succeeded:
            return "succeeded"
        return ", ".join(sorted({each.kind for each in self.failures})) or f"exit code {self.exit_code}"


class Running:
    """A job that runs."""

    def __init__(self, job: Job, folder: Path) -> None:
        from tests.fault.soak import job_process

        self._base = folder / f"job-{next(_NUMBERS)}"
        self._process = FORKED.Process(target=job_process.run, args=(job, self._base), daemon=False)
        self._process.start()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.is_alive()

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()

    def terminate(self) -> None:
        """SIGTERM."""
        self._process.terminate()

    def goes_on(self) -> None:
        """SIGCONT."""
        if self.alive:
            psutil.Process(self._pid).resume()

    def stops(self, seconds: float) -> bool:
        """Whether it suspends itself, as ARCHIVER_FAULT wants it, in so long; no where it ends before."""
        deadline = time.monotonic() + seconds
        while self.alive and time.monotonic() < deadline:
            try:
                if psutil.Process(self._pid).status() == psutil.STATUS_STOPPED:
                    return True
            except psutil.NoSuchProcess:
                return False
            time.sleep(_POLL)
        return False

    def ends(self, seconds: float) -> bool:
        """Whether it ends in so long."""
        self._process.join(seconds)
        return not self._process.is_alive()

    def ending(self, seconds: float) -> Ending:
        """Wait for the end; a job that hangs is killed, and TimeoutError raised with its log and where it stood."""
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
            failures=tuple(Failure(**each) for each in said["failures"]),
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
    """A job, which doesn't outlive the block."""
    started = Running(job, folder)
    try:
        yield started
    finally:
        if started.alive:
            started.kill()
