"""Runs small tasks several at a time: each group is one task of the engine, whose fixed cost its members share.

A Spark job for each task costs some 100 ms of CPU in driver, JVM and worker, whatever there is to do. A worker that
dies takes its whole group with it, so the members of a lost group run once more, each alone: one that can't be run
fails by itself, as it would have without a group.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import cast

from archiver.engine.runner import Engine, Outcome, Result, Task, outcome_of, run_captured
from archiver.errors import TaskInterrupted
from schema_mapping.errors import ContextError


def run_grouped(
    engine: Engine,
    tasks: Sequence[Task],
    run: Callable[[Task], Result],
    groups: Sequence[Sequence[int]],
    *,
    is_stopped: Callable[[], bool],
) -> Iterator[Outcome[Result]]:
    """Run `run` on each task, and yield its outcome once its group ends. `groups` has each index of `tasks` once.

    As with `Engine.run_tasks`, the engine can be interrupted from this call on. Once `is_stopped`, none begins again.
    """

    def alone(indices: Sequence[int]) -> Iterator[Outcome[Result]]:
        return _renumbered(engine.run_tasks([tasks[index] for index in indices], run), indices)

    if all(len(group) == 1 for group in groups):
        return alone([index for (index,) in groups])
    bundles = [tuple(tasks[index] for index in group) for group in groups]
    outcomes = engine.run_tasks(bundles, partial(_run_each, run))

    def unbundled() -> Iterator[Outcome[Result]]:
        lost: dict[int, ContextError | None] = {}
        with closing(cast("Generator[Outcome[tuple[bytes, ...]]]", outcomes)):
            for outcome in outcomes:
                members = groups[outcome.index]
                if outcome.result is not None:
                    yield from map(outcome_of, members, outcome.result)
                elif len(members) == 1 or isinstance(outcome.error, TaskInterrupted):
                    yield from (Outcome(index=index, error=outcome.error) for index in members)
                else:
                    lost |= dict.fromkeys(members, outcome.error)
        if lost and is_stopped():
            yield from (Outcome(index=index, error=error) for index, error in lost.items())
        elif lost:
            yield from alone(list(lost))

    return unbundled()


def _run_each(run: Callable[[Task], Result], bundle: Sequence[Task]) -> tuple[bytes, ...]:
    """Run the tasks of a group one after the other, in the engine's worker; their outcomes, pickled."""
    return tuple(run_captured(run, task) for task in bundle)


def _renumbered(outcomes: Iterator[Outcome[Result]], order: Sequence[int]) -> Iterator[Outcome[Result]]:
    """The outcomes under the numbers that their tasks have in `order`."""
    with closing(cast("Generator[Outcome[Result]]", outcomes)):
        for each in outcomes:
            yield Outcome(index=order[each.index], result=each.result, error=each.error)
