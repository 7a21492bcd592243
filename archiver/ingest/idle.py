"""The time between two runs of a job that repeats: other work on the archived topics may use it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from archiver.engine.runner import Engine

LEAST_SECONDS: Final = 2.0
"""Nothing is begun in less time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleTime:
    """The topics that the run before archived without an error, and the job's engine: it starts when it is asked for.

    Nothing new is to be begun once `is_over` says so: the next run is due, or the job is to stop.
    """

    topics: tuple[str, ...]
    engine: Callable[[], Engine]
    is_over: Callable[[], bool]


IdleWork: TypeAlias = Callable[[IdleTime], None]


def in_turn(*works: IdleWork) -> IdleWork:
    """Works one after the other, as long as there is time."""

    def work(idle: IdleTime) -> None:
        for each in works:
            if not idle.is_over():
                each(idle)

    return work
