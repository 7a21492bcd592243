"""Outcomes of failed or unreadable Spark jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from py4j.clientserver import ClientServer
from pyspark.sql import SparkSession

from archiver.engine.spark import SparkEngine
from archiver.errors import EngineError, WorkerLost

LOST = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent \
failure: Lost task 0.0 in stage 0.0 (TID 0) (host executor driver): """
CRASHED = f"""{LOST}org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.read(PythonRunner.scala:1)
Caused by: java.io.EOFException
\t... 1 more
"""
RAISED = f"""{LOST}org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
ModuleNotFoundError: No module named 'elsewhere'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.read(PythonRunner.scala:1)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.runJob(DAGScheduler.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
ModuleNotFoundError: No module named 'elsewhere'

\t... 1 more
"""
OF_A_QUERY = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
ModuleNotFoundError: No module named 'elsewhere'
"""


class JavaGone(Exception):
    def __str__(self) -> str:
        raise ConnectionRefusedError


class Classic:
    defaultParallelism = 1  # noqa: N815 - Spark's name
    _gateway = object.__new__(ClientServer)

    def __init__(self, collect: Callable[[], list[bytes]]) -> None:
        self.sparkContext = self.context = self
        self.collect = collect

    def same(self, *_: Any) -> Classic:
        return self

    parallelize = mapPartitions = addJobTag = cancelJobsWithTag = same  # noqa: N815 - Spark's names


def error_of(collect: Callable[[], list[bytes]]) -> Any:
    engine = SparkEngine(cast("SparkSession", Classic(collect)), owned=False)
    (outcome,) = engine.run_tasks(["task"], str)
    return outcome.error


def reason_of(error: Exception) -> object:
    def collect() -> list[bytes]:
        raise error

    lost = error_of(collect)
    assert isinstance(lost, WorkerLost)
    return lost.context["spark"]


def test_the_cause_is_the_last_line_of_a_traceback() -> None:
    assert reason_of(RuntimeError(RAISED)) == "ModuleNotFoundError: No module named 'elsewhere'"
    assert reason_of(RuntimeError(OF_A_QUERY)) == "ModuleNotFoundError: No module named 'elsewhere'"


def test_without_one_it_is_the_first_line_that_says_something() -> None:
    assert str(reason_of(RuntimeError(CRASHED))).endswith("Python worker exited unexpectedly (crashed).")
    assert reason_of(RuntimeError("[CODE] short\nmore")) == "[CODE] short"
    assert reason_of(RuntimeError()) == "RuntimeError"


def test_an_error_without_a_text_is_an_outcome() -> None:
    assert reason_of(JavaGone()) == "JavaGone"


def test_an_outcome_that_cannot_be_read_is_an_error() -> None:
    error = error_of(lambda: [b"no pickle"])
    assert type(error) is EngineError
    assert "UnpicklingError" in str(error)


def test_no_outcome_is_an_error() -> None:
    assert type(error_of(list)) is EngineError
