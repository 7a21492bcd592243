"""The engine's promises on real Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import types
from typing import Any

import pytest
from pyspark import cloudpickle

from archiver.engine.grouped import run_grouped
from archiver.engine.spark import SparkEngine
from archiver.errors import DataLoss, EngineError, TaskInterrupted, WorkerLost

pytestmark = [
    pytest.mark.integration,
    # PySpark leaves the socket of every collect() to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def behave(task: tuple[str, Any]):
    what, value = task
    match what:
        case "return":
            return value
        case "lose":
            raise DataLoss("offsets are gone", topic="orders", partition=value)
        case "raise":
            raise ZeroDivisionError("by accident")
        case "die":
            os._exit(value)
        case _:
            time.sleep(value)
            return "slept"


def test_every_task_has_one_outcome_and_errors_are_values(engine: SparkEngine):
    tasks = [("return", b"\x00\xff"), ("lose", 3), ("raise", 0), ("return", "text"), ("return", None)]
    outcomes = {outcome.index: outcome for outcome in engine.run_tasks(tasks, behave)}
    assert sorted(outcomes) == list(range(5))
    assert [outcomes[index].result for index in (0, 3, 4)] == [b"\x00\xff", "text", None]
    assert isinstance(outcomes[1].error, DataLoss)
    assert outcomes[1].error.context == {"topic": "orders", "partition": 3}
    assert isinstance(outcomes[2].error, EngineError)
    assert "ZeroDivisionError: by accident" in str(outcomes[2].error)


def test_workers_find_imported_what_the_session_names():
    command = [sys.executable, "-m", "tests.support.engine.preloading_process"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"0": True, "1": False}


def test_a_dead_worker_takes_no_other_task_with_it(engine: SparkEngine):
    outcomes = {outcome.index: outcome for outcome in engine.run_tasks([("die", 9), ("return", 1)], behave)}
    assert isinstance(outcomes[0].error, WorkerLost)
    assert outcomes[0].error.retryable
    assert outcomes[1].result == 1


def test_who_cannot_load_a_task_says_why(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch):
    elsewhere = types.ModuleType("elsewhere")
    exec("def unknown(task): ...", vars(elsewhere))
    monkeypatch.setitem(sys.modules, "elsewhere", elsewhere)
    (outcome,) = engine.run_tasks([None], elsewhere.unknown)
    assert isinstance(outcome.error, WorkerLost)
    assert outcome.error.context["spark"] == "ModuleNotFoundError: No module named 'elsewhere'"


def test_tags_stay_with_the_threads_of_tasks(engine: SparkEngine):
    """Otherwise an interrupt would end the caller's own SQL."""
    assert [outcome.result for outcome in engine.run_tasks([("return", 7)], behave)] == [7]
    assert list(engine.session.sparkContext.getJobTags()) == []


def test_a_dead_worker_takes_no_task_of_its_group_with_it(engine: SparkEngine):
    """The group's other tasks run again, each alone."""
    tasks = [("return", 1), ("die", 9), ("lose", 3), ("return", 4), ("return", 5)]
    outcomes = list(run_grouped(engine, tasks, behave, [(0, 1, 2), (3, 4)], is_stopped=lambda: False))
    assert sorted(outcome.index for outcome in outcomes) == list(range(5))
    by_index = {outcome.index: outcome for outcome in outcomes}
    assert [by_index[index].result for index in (0, 3, 4)] == [1, 4, 5]
    assert isinstance(by_index[1].error, WorkerLost)
    assert isinstance(by_index[2].error, DataLoss)


def test_the_slots_are_the_masters(engine: SparkEngine):
    assert engine.slots == 2


def test_no_tasks_no_outcomes(engine: SparkEngine):
    assert list(engine.run_tasks([], behave)) == []


def test_an_interrupt_ends_running_and_waiting_tasks(engine: SparkEngine):
    timer = threading.Timer(2, engine.interrupt)
    timer.start()
    start = time.monotonic()
    outcomes = list(engine.run_tasks([("sleep", 60)] * 8, behave))
    assert time.monotonic() - start < 30
    assert len(outcomes) == 8
    assert all(isinstance(outcome.error, TaskInterrupted) for outcome in outcomes)
    assert [outcome.result for outcome in engine.run_tasks([("return", 7)], behave)] == [7]
