"""Tasks in groups, and dead workers."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from archiver.engine import grouped
from archiver.engine.grouped import run_grouped
from archiver.engine.runner import Result, Task, TaskOutcome
from archiver.errors import TaskInterrupted, UpkeepError, WorkerLost
from tests.support.engine.inline_engine import InlineEngine

GROUPS = ((0, 1, 2), (3,), (4, 5))


def doubled(task: int) -> int:
    if task == 5:
        raise UpkeepError("no five", file="f")
    return 2 * task


class Losing(InlineEngine):
    def __init__(self, *, error: type[WorkerLost | TaskInterrupted] = WorkerLost) -> None:
        super().__init__()
        self.calls: list[list[object]] = []
        self._error = error

    def run_tasks(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[TaskOutcome[Result]]:
        self.calls.append(list(tasks))
        dies = [index for index, value in enumerate(tasks) if value == 1 or (isinstance(value, tuple) and 1 in value)]
        return self._some(super().run_tasks(tasks, run), dies)

    def _some(self, outcomes: Iterator[TaskOutcome[Result]], dies: Sequence[int]) -> Iterator[TaskOutcome[Result]]:
        for outcome in outcomes:
            yield TaskOutcome(index=outcome.index, error=self._error("gone")) if outcome.index in dies else outcome


def found(engine: InlineEngine, groups: Sequence[Sequence[int]], **more: Any) -> dict[int, object]:
    outcomes = list(run_grouped(engine, range(6), doubled, groups, **{"is_stopped": lambda: False} | more))
    assert sorted(outcome.index for outcome in outcomes) == list(range(6)), "each task has one outcome"
    return {outcome.index: outcome.error.message if outcome.error else outcome.result for outcome in outcomes}


def test_each_task_of_a_group_has_its_own_outcome() -> None:
    assert found(InlineEngine(), GROUPS) == {0: 0, 1: 2, 2: 4, 3: 6, 4: 8, 5: "no five"}


ENTERED: list[tuple[str, tuple[int, ...], str]] = []


@contextmanager
def noted(tasks: Sequence[int]) -> Iterator[Callable[[int], int]]:
    ENTERED.append(("in", tuple(tasks), threading.current_thread().name))
    yield lambda task: doubled(task) + 100
    ENTERED.append(("out", tuple(tasks), threading.current_thread().name))


def test_the_tasks_of_a_group_run_in_a_context_of_their_own() -> None:
    ENTERED.clear()
    engine = InlineEngine()
    results = found(engine, [(0, 1, 2), (4, 5), (3,)], together=noted)
    assert results == {0: 100, 1: 102, 2: 104, 3: 106, 4: 108, 5: "no five"}
    assert {tasks for way, tasks, _ in ENTERED if way == "in"} == {(0, 1, 2), (4, 5), (3,)}
    assert {value[1:] for value in ENTERED if value[0] == "in"} == {value[1:] for value in ENTERED if value[0] == "out"}
    ENTERED.clear()
    assert found(engine, [(index,) for index in range(6)], together=noted)[5] == "no five"
    assert not ENTERED


def test_tasks_alone_are_given_to_the_engine_as_they_are() -> None:
    engine = Losing()
    assert found(engine, [(5,), (0,), (2,), (1,), (4,), (3,)]) == {0: 0, 1: "gone", 2: 4, 3: 6, 4: 8, 5: "no five"}
    assert engine.calls == [[5, 0, 2, 1, 4, 3]]


def test_the_tasks_of_a_lost_group_run_again_alone(caplog: pytest.LogCaptureFixture) -> None:
    engine = Losing()
    assert found(engine, GROUPS) == {0: 0, 1: "gone", 2: 4, 3: 6, 4: 8, 5: "no five"}
    assert engine.calls == [[(0, 1, 2), (3,), (4, 5)], [0, 1, 2]]
    assert "a group of 3 tasks was lost" in caplog.text


def test_tasks_that_a_group_has_no_time_for_run_alone() -> None:
    engine = Losing()
    assert found(engine, [(0, 2, 3), (4, 5, 1)], seconds=0.0) == {0: 0, 1: "gone", 2: 4, 3: 6, 4: 8, 5: "no five"}
    assert engine.calls[0] == [(0, 2, 3), (4, 5, 1)]
    assert sorted(engine.calls[1], key=str) == [1, 2, 3, 4, 5], "of the first group, one began"
    slow = InlineEngine()
    assert found(slow, [(0, 2, 3), (4, 5, 1)], seconds=0.0) == {0: 0, 1: 2, 2: 4, 3: 6, 4: 8, 5: "no five"}


def test_large_tasks_share_no_group_beyond_what_spark_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "GROUP_BYTES", 2 * len(pickle.dumps(3, protocol=5)))
    engine = Losing()
    assert found(engine, [tuple(range(5)), (5,)]) == {0: 0, 1: "gone", 2: 4, 3: 6, 4: 8, 5: "no five"}
    assert engine.calls == [[(0, 1), (2, 3), (4,), (5,)], [0, 1]]


def test_what_was_interrupted_is_not_run_again() -> None:
    engine = Losing(error=TaskInterrupted)
    assert found(engine, GROUPS) == {0: "gone", 1: "gone", 2: "gone", 3: 6, 4: 8, 5: "no five"}
    assert len(engine.calls) == 1


def test_nothing_begins_again_once_the_job_stops() -> None:
    """The engine forgets an interrupt before its second call."""
    engine = Losing()
    outcomes = run_grouped(engine, range(6), doubled, GROUPS, is_stopped=lambda: True)
    stopped = {outcome.index for outcome in outcomes if isinstance(outcome.error, TaskInterrupted)}
    assert stopped == {0, 2}, "1 is lost even then"
