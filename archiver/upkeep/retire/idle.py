"""Retires records of topics with `expire = "auto"` while an archive job that repeats waits for its next run.

Only whole files go, so no file is read or written. What needs consent waits for it. A failure is told and tried again
in a later pause; it never stops the job.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from archiver.config import Config
from archiver.errors import ConsentMissing
from archiver.ingest.idle import IdleTime
from archiver.observer import ignore
from archiver.upkeep.consent import WITHHELD
from archiver.upkeep.retire.job import Expire
from archiver.upkeep.retire.report import ExpireObserver, TopicRetired
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)

REST_SECONDS: Final = 600.0
"""A topic in which nothing is left to do, or that failed, is looked at again after this long."""


class IdleRetirement:
    """What an archive job does while it is idle: `retention` and `retention_size` of its topics are applied."""

    def __init__(
        self,
        config: Config,
        observer: ExpireObserver = ignore,
        *,
        latest: Callable[[], Config] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`latest` loads the configuration again: a `hold` that was set meanwhile keeps records from going."""
        self._config = config
        self._latest = latest
        self._observer = observer
        self._clock = clock
        self._rests_until: dict[str, float] = {}
        self._waiting: dict[str, str] = {}

    def __call__(self, idle: IdleTime) -> None:
        """Retire records of one topic after the other until the time is over."""
        for name in idle.topics:
            if idle.is_over():
                return
            if self._config.topic(name).expire == "auto" and self._rests_until.get(name, 0.0) <= self._clock():
                self._expire(name, idle)

    def _expire(self, name: str, idle: IdleTime) -> None:
        try:
            config = self._latest() if self._latest else self._config
            job = Expire(config, (name,), self._observer, is_over=idle.is_over, consent=WITHHELD)
            (done,) = job.run().topics
        except Exception as error:  # noqa: BLE001 - archiving goes on, whatever is wrong here
            told = error if isinstance(error, ContextError) else None
            _LOG.warning("%s was not retired, archiving goes on: %s", name, error, exc_info=None if told else error)
            self._rest(name)
            return
        if self._waits(done):
            self._rest(name)
            return
        if done.error is not None:
            _LOG.warning("%s was not retired, archiving goes on: %s", name, done.error)
        for failure in (*done.failures.values(), *done.purged.failures.values()):
            _LOG.warning("a file of %s was not retired, archiving goes on: %s", name, failure)
        for partition, path in sorted(done.kept.items()):
            _LOG.warning("a file keeps records of %s, partition %d, that should go: %s", name, partition, path)
        if not done.stopped:
            self._rest(name)

    def _waits(self, done: TopicRetired) -> bool:
        """Whether the topic waits for consent. That is logged once for each reason: `status` says it all the time."""
        if not isinstance(done.error, ConsentMissing):
            self._waiting.pop(done.topic, None)
            return False
        if self._waiting.get(done.topic) != done.error.message:
            _LOG.warning("%s waits for consent, archiving goes on: %s", done.topic, done.error)
        self._waiting[done.topic] = done.error.message
        return True

    def _rest(self, name: str) -> None:
        self._rests_until[name] = self._clock() + REST_SECONDS
