"""The thread engine: outcomes and interrupts."""

from __future__ import annotations

import threading

from archiver.engine.threads import ThreadEngine
from archiver.errors import EngineError, TaskInterrupted, UpkeepError


def test_results_and_errors_come_with_the_index_of_their_task() -> None:
    def run(task: int) -> int:
        if task == 3:
            raise UpkeepError("no three", file="f")
        return 10 // (task - 4)

    result = {task.index: task for task in ThreadEngine(3).run_tasks([2, 3, 4, 5], run)}
    assert sorted(result) == [0, 1, 2, 3]
    assert (result[0].result, result[3].result) == (-5, 10)
    assert isinstance(result[1].error, UpkeepError)
    assert isinstance(result[2].error, EngineError)
    assert "ZeroDivisionError" in result[2].error.message


def test_an_interrupt_stops_what_has_not_begun() -> None:
    engine, begun = ThreadEngine(1), threading.Event()

    def run(task: int) -> int:
        begun.set()
        engine.interrupt()
        return task

    outcomes = list(engine.run_tasks([1, 2, 3], run))
    assert begun.is_set()
    assert [outcome.result for outcome in outcomes if outcome.error is None] == [1]
    assert {type(outcome.error) for outcome in outcomes if outcome.error} == {TaskInterrupted}
    assert [task.result for task in engine.run_tasks([], run)] == []


def test_nothing_more_begins_when_nobody_listens() -> None:
    engine, ran = ThreadEngine(1), list[int]()
    release = threading.Event()

    def run(task: int) -> int:
        ran.append(task)
        if task:
            release.wait(10)
        return task

    outcomes = engine.run_tasks(range(50), run)
    assert next(iter(outcomes)).result == 0
    threading.Timer(0.2, release.set).start()
    outcomes.close()  # type: ignore[attr-defined]
    assert len(ran) <= 2
