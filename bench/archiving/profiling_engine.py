"""Spark as the engine, with profiles of the tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from archiver.engine.runner import TaskOutcome
from archiver.engine.spark import SparkEngine
from archiving.profile import profiled


class ProfilingEngine(SparkEngine):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.seconds: Counter[str] = Counter()

    def run_tasks(self, tasks: Sequence[Any], run: Callable[[Any], Any]) -> Iterator[TaskOutcome[Any]]:
        for outcome in super().run_tasks(tasks, partial(profiled, run)):
            if outcome.result is None:
                yield outcome
                continue
            result, seconds = outcome.result
            self.seconds.update(seconds)
            yield TaskOutcome(index=outcome.index, result=result)
