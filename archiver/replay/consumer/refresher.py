"""Loads tables again in the background, every few seconds, for a consumer that waits at their end."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Executor, Future

from archiver.archive.topic_archive import TopicArchive


class Refresher:
    """One refresh at a time, `seconds` apart. Times are those of `time.monotonic`."""

    def __init__(self, executor: Executor, seconds: float) -> None:
        self._executor = executor
        self._seconds = seconds
        self._last = time.monotonic()
        self._running: Future[None] | None = None

    @property
    def under_way(self) -> tuple[Future[None], ...]:
        """The refresh that is going on, if one is."""
        return () if self._running is None else (self._running,)

    @property
    def due(self) -> float | None:
        """When the next refresh is to start; None while one is going on."""
        return self._last + self._seconds if self._running is None else None

    def step(self, archives: Iterable[TopicArchive]) -> bool:
        """Start a refresh of `archives` if one is due; True when the one before has just ended.

        Raises what that one raised.
        """
        now = time.monotonic()
        has_ended = self._running is not None and self._running.done()
        if has_ended and self._running is not None:
            ended, self._running = self._running, None
            self._last = now
            ended.result()
        elif self._running is None and now >= self._last + self._seconds:
            self._running = self._executor.submit(_refresh, tuple(archives))
        return has_ended


def _refresh(archives: Iterable[TopicArchive]) -> None:
    for archive in archives:
        archive.refresh()
