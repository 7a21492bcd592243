"""Tasks in threads of this process, without Spark."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from archiver.engine.runner import Result, Task, TaskOutcome, outcome_of, run_captured
from archiver.errors import TaskInterrupted


class ThreadEngine:
    """An interrupt ends tasks that haven't begun; running tasks continue."""

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots or os.cpu_count() or 1
        self._interrupted = threading.Event()

    def run_tasks(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[TaskOutcome[Result]]:
        self._interrupted.clear()
        return self._outcomes(tasks, run)

    def interrupt(self) -> None:
        self._interrupted.set()

    def _outcomes(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[TaskOutcome[Result]]:
        with ThreadPoolExecutor(self.slots) as pool:
            futures = {pool.submit(self._captured, run, task): index for index, task in enumerate(tasks)}
            try:
                for future in as_completed(futures):
                    outcome = future.result()
                    yield outcome_of(futures[future], outcome) if outcome else _stopped(futures[future])
            finally:
                self._interrupted.set()  # a caller that closes the iterator needs no more tasks

    def _captured(self, run: Callable[[Task], Result], task: Task) -> bytes | None:
        return None if self._interrupted.is_set() else run_captured(run, task)


def _stopped(index: int) -> TaskOutcome[Result]:
    return TaskOutcome(index=index, error=TaskInterrupted("The task was stopped before it started"))
