"""The archives of a consumer: opened at first use, refreshed while it waits."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future

from archiver.archive.tables import CatalogTables, TableSource
from archiver.archive.topic_archive import TopicArchive, open_archive
from archiver.config import Config


class OpenArchives:
    """`tables` replace the configuration's catalog."""

    def __init__(self, config: Config, tables: TableSource | None) -> None:
        self._config = config
        self.tables = tables or CatalogTables(config)
        self._opened: dict[str, TopicArchive] = {}

    def of(self, topic: str) -> TopicArchive:
        """Raises ReplayError if the topic has no archive."""
        archive = self._opened.get(topic)
        if archive is None:
            archive = self._opened[topic] = open_archive(self._config, topic, self.tables)
        return archive

    @property
    def opened(self) -> dict[str, TopicArchive]:
        return dict(self._opened)

    def listed(self, topic: str | None) -> Sequence[TopicArchive]:
        return [self.of(name) for name in ([topic] if topic else self.tables.topics())]


class Refresher:
    """Refreshes in the background, `seconds` after the previous refresh."""

    def __init__(self, executor: Executor, seconds: float) -> None:
        self._executor = executor
        self._seconds = seconds
        self._last = time.monotonic()
        self._running: Future[None] | None = None

    @property
    def running(self) -> tuple[Future[None], ...]:
        return () if self._running is None else (self._running,)

    @property
    def due(self) -> float | None:
        """Of `time.monotonic`; None during a refresh."""
        return self._last + self._seconds if self._running is None else None

    def step(self, archives: Iterable[TopicArchive]) -> bool:
        """True if a refresh has just ended. Raises its error."""
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
    failure: Exception | None = None
    for archive in archives:
        try:
            archive.refresh()
        except Exception as error:  # noqa: BLE001 - raised below
            failure = failure or error
    if failure is not None:
        raise failure
