"""Runs small tasks in groups, because a Spark job costs some 100 ms of CPU.

Tasks that a lost or slow group left run alone at the end.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from typing import Final, cast

from archiver.engine.runner import Engine, Result, Task, TaskOutcome, outcome_of, run_captured
from archiver.errors import TaskInterrupted

_LOG = logging.getLogger(__name__)

GROUP_SECONDS: Final = 5.0
"""No member of a group begins later than this after the first: finished members would wait for it."""

GROUP_BYTES: Final = 512 << 10
"""The most bytes of a group's pickled tasks. PySpark keeps functions above 1 MiB in files until it ends."""


def run_grouped(
    engine: Engine,
    tasks: Sequence[Task],
    run: Callable[[Task], Result],
    groups: Sequence[Sequence[int]],
    *,
    is_stopped: Callable[[], bool],
    together: Callable[[Sequence[Task]], AbstractContextManager[Callable[[Task], Result]]] | None = None,
    seconds: float = GROUP_SECONDS,
) -> Generator[TaskOutcome[Result]]:
    """Yield outcomes as groups end. `groups` has each index of `tasks` once.

    `together` opens a group's shared resources in its thread, and gives the function that runs each task. The engine
    can be interrupted from this call on. Once `is_stopped`, no task begins. Closing the generator interrupts running
    tasks.
    """

    def alone(indices: Sequence[int]) -> Generator[TaskOutcome[Result]]:
        return _renumbered(engine.run_tasks([tasks[index] for index in indices], run), indices)

    groups = [part for group in groups for part in _parts(tasks, group)]
    if all(len(group) == 1 for group in groups):
        return alone([index for (index,) in groups])
    bundles = [tuple(tasks[index] for index in group) for group in groups]
    outcomes = engine.run_tasks(bundles, partial(_run_each, run, together, seconds))

    def unbundled() -> Generator[TaskOutcome[Result]]:
        left: list[int] = []
        with closing(cast("Generator[TaskOutcome[tuple[bytes | None, ...]]]", outcomes)):
            for outcome in outcomes:
                members = groups[outcome.index]
                if outcome.result is not None:
                    done = dict(zip(members, outcome.result, strict=True))
                    left += (index for index, pickled in done.items() if pickled is None)
                    yield from (outcome_of(index, pickled) for index, pickled in done.items() if pickled is not None)
                elif len(members) == 1 or isinstance(outcome.error, TaskInterrupted):
                    yield from (TaskOutcome(index=index, error=outcome.error) for index in members)
                else:
                    _LOG.warning("a group of %d tasks was lost: each runs again", len(members), exc_info=outcome.error)
                    left += members
        if left:
            again = alone(left)
            if is_stopped():  # after `alone`, which clears earlier interrupts
                engine.interrupt()
            yield from again

    return unbundled()


def _parts(tasks: Sequence[Task], group: Sequence[int]) -> Iterator[tuple[int, ...]]:
    part: list[int] = []
    size = 0
    for index in group:
        more = len(pickle.dumps(tasks[index], protocol=5)) if len(group) > 1 else 0
        if part and size + more > GROUP_BYTES:
            yield tuple(part)
            part, size = [], 0
        part.append(index)
        size += more
    if part:
        yield tuple(part)


def _run_each(
    run: Callable[[Task], Result],
    together: Callable[[Sequence[Task]], AbstractContextManager[Callable[[Task], Result]]] | None,
    seconds: float,
    bundle: Sequence[Task],
) -> tuple[bytes | None, ...]:
    """Return pickled outcomes in order; None for tasks that didn't begin within `seconds`."""
    until = time.monotonic() + seconds
    first, *rest = bundle
    with nullcontext(run) if together is None else together(bundle) as run_member:
        done = [run_captured(run_member, first)]
        return *done, *(run_captured(run_member, task) if time.monotonic() < until else None for task in rest)


def _renumbered(outcomes: Iterator[TaskOutcome[Result]], order: Sequence[int]) -> Generator[TaskOutcome[Result]]:
    with closing(cast("Generator[TaskOutcome[Result]]", outcomes)):
        for outcome in outcomes:
            yield TaskOutcome(index=order[outcome.index], result=outcome.result, error=outcome.error)
