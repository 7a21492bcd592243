"""An engine without Spark: tasks run in threads of this process, pickled on their way in and out as Spark would."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from archiver.engine.runner import Outcome, Result, Task, outcome_of, run_captured
from archiver.errors import TaskInterrupted


class InlineEngine:
    """An Engine for tests of what stands around tasks; an interrupt ends those that haven't begun."""

    slots = 2

    def __init__(self) -> None:
        self._interrupted = threading.Event()

    def run_tasks(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[Outcome[Result]]:
        self._interrupted.clear()
        return self._outcomes(tasks, run)

    def interrupt(self) -> None:
        self._interrupted.set()

    def _outcomes(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[Outcome[Result]]:
        pickled = [pickle.dumps((run, task)) for task in tasks]
        with ThreadPoolExecutor(self.slots) as pool:
            futures = {pool.submit(self._run_one, each): index for index, each in enumerate(pickled)}
            for future in as_completed(futures):
                outcome = future.result()
                yield outcome_of(futures[future], outcome) if outcome else _stopped(futures[future])

    def _run_one(self, pickled: bytes) -> bytes | None:
        return None if self._interrupted.is_set() else run_captured(*pickle.loads(pickled))


def _stopped(index: int) -> Outcome[Result]:
    return Outcome(index=index, error=TaskInterrupted("The task was stopped before it started"))
