"""Classic Spark (an RDD per task) and Spark Connect (`mapInArrow`).

Each task is a Spark job, so that a dead worker loses only its task.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from archiver.engine.runner import Result, Task, TaskOutcome, outcome_of, run_captured
from archiver.engine.session import reason_of, start_session
from archiver.errors import EngineError, TaskInterrupted, WorkerLost

if TYPE_CHECKING:
    from pyspark import RDD  # PySpark's client for Connect has none

MAX_IN_FLIGHT = 128
"""The most Spark jobs at the same time, on any cluster."""

_PROBE_ROWS = 1 << 14
_INTERRUPT_AGAIN_S = 1.0
_TRACEBACK: Final = "Traceback (most recent call last)"
_JAVA_FRAMES: Final = re.compile(r"^(\tat |(Driver|JVM) stacktrace:)", re.MULTILINE)


class SparkEngine:
    """Stops the session only if it started it."""

    def __init__(self, session: SparkSession, *, owned: bool) -> None:
        self._session = session
        self._owned = owned
        self._interrupted = False
        self._element = _one_element(session)
        self._tag = f"archiver-{uuid4().hex}"
        self.slots = _count_slots(session)

    @classmethod
    def start(cls, options: Mapping[str, str], *, preloaded: Sequence[str] = (), heaps: int = 1) -> Self:
        """Arguments and errors as in `start_session`."""
        session, owned = start_session(options, preloaded, heaps)
        return cls(session, owned=owned)

    @property
    def session(self) -> SparkSession:
        return self._session

    def run_tasks(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[TaskOutcome[Result]]:
        """`run` is a function of an importable module. Closing the iterator interrupts running tasks."""
        self._interrupted = False
        return self._outcomes(tasks, run)

    def interrupt(self) -> None:
        self._interrupted = True
        self._cancel()

    def close(self) -> None:
        if self._owned:
            try:
                _end_accumulators(self._session)
            finally:
                self._session.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _outcomes(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[TaskOutcome[Result]]:
        waiting = deque(enumerate(tasks))
        finished: SimpleQueue[TaskOutcome[Result]] = SimpleQueue()

        def work() -> None:
            with suppress(IndexError):
                while True:
                    index, task = waiting.popleft()
                    finished.put(self._run_one(index, task, run))

        threads = [
            threading.Thread(target=work, name=f"spark-task-{number}", daemon=True)
            for number in range(min(len(tasks), self.slots + 2, MAX_IN_FLIGHT))
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in tasks:
                yield self._next(finished)
        finally:
            if waiting or any(thread.is_alive() for thread in threads):
                waiting.clear()
                self.interrupt()
            for thread in threads:
                self._join(thread)

    def _next(self, finished: SimpleQueue[TaskOutcome[Result]]) -> TaskOutcome[Result]:
        while True:
            try:
                return finished.get(timeout=_INTERRUPT_AGAIN_S)
            except Empty:
                self._interrupt_latecomers()

    def _join(self, thread: threading.Thread) -> None:
        thread.join(_INTERRUPT_AGAIN_S)
        while thread.is_alive():
            self._interrupt_latecomers()
            thread.join(_INTERRUPT_AGAIN_S)

    def _interrupt_latecomers(self) -> None:
        """Spark forgets an interrupt at once, and a later task would run to its end."""
        if self._interrupted:
            self._cancel()

    def _cancel(self) -> None:
        if self._element is None:
            self._session.interruptAll()
        else:
            self._element.context.cancelJobsWithTag(self._tag)

    def _run_one(self, index: int, task: Task, run: Callable[[Task], Result]) -> TaskOutcome[Result]:
        if self._interrupted:
            return TaskOutcome(index=index, error=TaskInterrupted("The task was stopped before it started"))
        try:
            outcomes = self._collect(task, run)
        except Exception as error:  # noqa: BLE001 - PySpark, py4j and gRPC each raise their own
            return TaskOutcome(index=index, error=self._explain(error))
        if len(outcomes) != 1:
            return TaskOutcome(index=index, error=EngineError("Spark gave no outcome for a task", rows=len(outcomes)))
        try:
            return outcome_of(index, outcomes[0])
        except Exception as error:  # noqa: BLE001 - a thread without an outcome would be waited for without end
            kind = type(error).__name__
            return TaskOutcome(index=index, error=EngineError(f"A task's outcome can't be unpickled: {kind}: {error}"))

    def _collect(self, task: Task, run: Callable[[Task], Result]) -> list[bytes]:
        if self._element is not None:
            self._element.context.addJobTag(self._tag)  # for all jobs of this thread; a second time changes nothing
            return self._element.mapPartitions(_partition_function(task, run)).collect()
        rows = self._session.range(0, 1, 1, 1).mapInArrow(_arrow_function(task, run), "outcome binary").collect()
        return [bytes(row[0]) for row in rows]

    def _explain(self, error: Exception) -> EngineError:
        if self._interrupted:
            return TaskInterrupted("The task was stopped")
        return WorkerLost(
            "Spark lost the Python worker of a task, or could not start it; look at its memory and its log",
            spark=_reason(error),
        )


def _partition_function(task: Task, run: Callable[[Task], Result]) -> Callable[[Iterable[None]], Iterable[bytes]]:
    def run_in_partition(elements: Iterable[None]) -> Iterator[bytes]:
        for _ in elements:
            yield run_captured(run, task)

    return run_in_partition


def _arrow_function(
    task: Task, run: Callable[[Task], Result]
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def run_in_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _ in range(batch.num_rows):
                yield pa.RecordBatch.from_arrays([pa.array([run_captured(run, task)], pa.binary())], names=["outcome"])

    return run_in_partition


def _count_slots(session: SparkSession) -> int:
    context = getattr(session, "sparkContext", None)
    if context is not None:
        return int(context.defaultParallelism)
    return session.range(0, _PROBE_ROWS).selectExpr("spark_partition_id()").distinct().count()


def _one_element(session: SparkSession) -> RDD[None] | None:
    """None if tasks are queries. One for all tasks: PySpark writes a file for each."""
    context = getattr(session, "sparkContext", None)
    if context is None:
        return None
    from py4j.clientserver import ClientServer

    return context.parallelize([None], 1) if isinstance(context._gateway, ClientServer) else None  # noqa: SLF001


def _end_accumulators(session: SparkSession) -> None:
    """Waiting for the unused server takes up to a second. One on a Unix socket stays."""
    context: Any = getattr(session, "sparkContext", None)
    server = getattr(context, "_accumulatorServer", None)
    if server is not None and not isinstance(server.server_address, str):
        context._accumulatorServer = None  # noqa: SLF001 - so that PySpark doesn't wait for it
        threading.Thread(target=server.shutdown, name="spark-accumulators", daemon=True).start()


def _reason(error: Exception) -> str:
    try:
        text = str(error)
        if _TRACEBACK not in text:
            return reason_of(error)
    except Exception:  # noqa: BLE001 - py4j gets the text from Java, which may have ended
        return type(error).__name__
    of_python = _JAVA_FRAMES.split(text[text.index(_TRACEBACK) :], maxsplit=1)[0]
    return of_python.strip().splitlines()[-1].strip()
