"""The interface between jobs and engines."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from archiver.errors import EngineError
from schema_mapping.errors import ContextError

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome(Generic[Result]):
    """The result of a task, or its error."""

    index: int
    result: Result | None = None
    error: ContextError | None = None


class Engine(Protocol):
    """Runs lists of independent tasks."""

    @property
    def slots(self) -> int:
        """The number of tasks at a time."""

    def run_tasks(self, tasks: Sequence[Task], run: Callable[[Task], Result]) -> Iterator[TaskOutcome[Result]]:
        """Yield outcomes as tasks finish. Tasks, results and errors must pickle.

        `interrupt` works from this call on.
        """

    def interrupt(self) -> None:
        """Each task of the last call ends with TaskInterrupted. Thread-safe."""


def run_captured(run: Callable[[Task], Result], task: Task) -> bytes:
    try:
        return pickle.dumps((run(task), None), protocol=5)
    except ContextError as error:
        return pickle.dumps((None, error), protocol=5)
    except Exception as error:  # noqa: BLE001 - every failure of a task becomes an outcome
        where = traceback.extract_tb(error.__traceback__)[-1]
        unexpected = EngineError(
            f"A task ended in an error nobody foresaw: {type(error).__name__}: {error}",
            at=f"{where.filename}:{where.lineno} {where.name}",
        )
        return pickle.dumps((None, unexpected), protocol=5)


def outcome_of(index: int, pickled: bytes) -> TaskOutcome[Result]:
    result, error = pickle.loads(pickled)  # noqa: S301 - written by the archiver's task
    return TaskOutcome(index=index, result=result, error=error)
