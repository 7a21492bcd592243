"""Spark forgets early interrupts; the engine repeats."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Generator
from typing import Any, cast

import pytest
from py4j.clientserver import ClientServer
from pyspark.sql import SparkSession

from archiver.engine.spark import SparkEngine
from archiver.errors import TaskInterrupted, WorkerLost

TIMEOUT_S = 30.0


class SlowToSubmit:
    """A Spark Connect session whose first jobs are lost. The next job arrives after the first interrupt."""

    def __init__(self, *, lost: int) -> None:
        self._lost = lost
        self._jobs = itertools.count()
        self.submitted = 0
        self.on_its_way, self.interrupted, self.cancelled = threading.Event(), threading.Event(), threading.Event()

    def same(self, *_: Any) -> SlowToSubmit:
        return self

    range = selectExpr = distinct = mapInArrow = same  # noqa: N815 - Spark's names

    def count(self) -> int:
        return 1

    def collect(self) -> None:
        self.submitted += 1
        if next(self._jobs) >= self._lost:
            self.on_its_way.set()
            assert self.interrupted.wait(TIMEOUT_S)
            assert self.cancelled.wait(TIMEOUT_S)
        raise RuntimeError("lost or cancelled")

    def interruptAll(self) -> None:  # noqa: N802 - Spark's name
        (self.cancelled if self.interrupted.is_set() else self.interrupted).set()


class ClassicAndSlow(SlowToSubmit):
    """The same with a context, whose jobs are cancelled by their tag."""

    defaultParallelism = 1  # noqa: N815 - Spark's name
    parallelize = mapPartitions = SlowToSubmit.same  # noqa: N815 - Spark's names
    _gateway: object = object.__new__(ClientServer)

    def __init__(self, *, lost: int) -> None:
        super().__init__(lost=lost)
        self.sparkContext = self.context = self
        self._tags: set[str] = set()

    def addJobTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        self._tags.add(tag)

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802 - Spark's name
        if tag in self._tags:
            super().interruptAll()

    def interruptAll(self) -> None:  # noqa: N802 - Spark's name
        raise AssertionError("jobs on an RDD have no tag of the session's")


class UnpinnedAndSlow(SlowToSubmit):
    """The same with threads that share Java's: a tag may stay with another thread."""

    defaultParallelism = 1  # noqa: N815 - Spark's name
    _gateway = None

    def __init__(self, *, lost: int) -> None:
        super().__init__(lost=lost)
        self.sparkContext = self


@pytest.fixture(params=[SlowToSubmit, ClassicAndSlow, UnpinnedAndSlow])
def kind(request: pytest.FixtureRequest) -> type[SlowToSubmit]:
    return cast("type[SlowToSubmit]", request.param)


def engine_on(session: SlowToSubmit) -> SparkEngine:
    return SparkEngine(cast("SparkSession", session), owned=False)


def test_it_ends_when_it_is_there(kind: type[SlowToSubmit]) -> None:
    session = kind(lost=0)
    engine = engine_on(session)

    def stop() -> None:
        session.on_its_way.wait(TIMEOUT_S)
        engine.interrupt()

    stopper = threading.Thread(target=stop)
    stopper.start()
    (outcome,) = engine.run_tasks(["task"], str)
    stopper.join()
    assert isinstance(outcome.error, TaskInterrupted)
    assert session.cancelled.is_set()


def test_it_ends_for_who_wants_no_more_outcomes(kind: type[SlowToSubmit]) -> None:
    session = kind(lost=1)
    outcomes = cast("Generator[Any]", engine_on(session).run_tasks(["lost", "late"], str))
    assert isinstance(next(outcomes).error, WorkerLost)
    assert session.on_its_way.wait(TIMEOUT_S)
    outcomes.close()
    assert session.cancelled.is_set()


def test_interrupt_before_first_outcome_request_counts(kind: type[SlowToSubmit]) -> None:
    """SIGTERM comes after a wave's tasks were submitted. None of them starts."""
    session = kind(lost=2)
    engine = engine_on(session)
    outcomes = engine.run_tasks(["first", "second"], str)
    engine.interrupt()
    assert all(isinstance(outcome.error, TaskInterrupted) for outcome in outcomes)
    assert not session.submitted
