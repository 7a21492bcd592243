"""Compacts topics with `compact = "auto"` while an archive job that repeats waits for its next run.

The job's own engine does the work. A failure is told and tried again in a later pause; it never stops the job.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from archiver.config import Config
from archiver.ingest.idle import IdleTime
from archiver.observer import ignore
from archiver.upkeep.compact.choice import Budget
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.compact.report import CompactObserver
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)

REST_SECONDS: Final = 600.0
"""A topic in which nothing was left to do, or that failed, is looked at again after this long."""


class IdleCompaction:
    """What an archive job does while it is idle."""

    def __init__(
        self, config: Config, observer: CompactObserver = ignore, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config = config
        self._observer = observer
        self._clock = clock
        self._rests_until: dict[str, float] = {}

    def __call__(self, idle: IdleTime) -> None:
        """Compact one topic after the other until the time is over."""
        for name in idle.topics:
            if idle.is_over():
                return
            if self._config.topic(name).compact == "auto" and self._rests_until.get(name, 0.0) <= self._clock():
                self._compact(name, idle)

    def _compact(self, name: str, idle: IdleTime) -> None:
        settings = self._config.archive
        budget = Budget(
            is_over=idle.is_over, largest_group=settings.task_size, commit_seconds=settings.max_commit_interval
        )
        work = Compact(
            self._config,
            (name,),
            Wish(saves_work=True),
            self._observer,
            budget=budget,
            engine=idle.engine,
        )
        try:
            (done,) = work.run().topics
        except Exception as error:  # noqa: BLE001 - archiving goes on, whatever is wrong here
            told = error if isinstance(error, ContextError) else None
            _LOG.warning("%s was not compacted, archiving goes on: %s", name, error, exc_info=None if told else error)
            self._rest(name)
            return
        for failure in (*done.failures.values(), *((done.error,) if done.error else ())):
            _LOG.warning("files of %s were not put together, archiving goes on: %s", name, failure)
        if not done.stopped:
            self._rest(name)

    def _rest(self, name: str) -> None:
        self._rests_until[name] = self._clock() + REST_SECONDS
