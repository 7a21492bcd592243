"""`archiver orphans`: delete unreferenced uploads, and manifests of failed commits.

Keeps foreign files, and files that a snapshot, registry, journal or commit in doubt refers to.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from archiver.audit.trail import AuditTrail
from archiver.config import Config
from archiver.errors import ConfigError, ConsentMissing, StorageError
from archiver.observer import all_of, ignore
from archiver.storage.formats import FORMATS
from archiver.storage.journal import Journal
from archiver.storage.spool import clean_spool, dead_folders
from archiver.upkeep.archived_topic import known_topics
from archiver.upkeep.consent import GIVEN, Consent, RemovalQuestion
from archiver.upkeep.known_holds import holds_in_force
from archiver.upkeep.orphans.ended import forget_ended
from archiver.upkeep.orphans.noted import noted_deletion
from archiver.upkeep.orphans.removal import remove_orphans
from archiver.upkeep.orphans.report import (
    OrphanFailed,
    OrphanObserver,
    OrphansFinished,
    OrphansFound,
    OrphansReport,
    TopicOrphans,
)
from archiver.upkeep.orphans.search import Connected, OrphanSearch
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry
from schema_mapping.errors import ContextError

_LOG = logging.getLogger(__name__)

_SHOWN = 5
LEAST_AGE = 86_400.0
"""Younger orphans are deleted only where the configuration's `orphan_grace` allows it."""


class Orphans:
    """By default all topics that are registered and configured.

    `older_than` (seconds) defaults to `[archive] orphan_grace`. Raises ConfigError if under a day and under the
    configured minimum.
    """

    def __init__(
        self,
        config: Config,
        topics: Sequence[str],
        observer: OrphanObserver = ignore,
        *,
        older_than: float | None = None,
        deletes: bool = False,
        clock: Callable[[], float] = time.time,
        consent: Consent = GIVEN,
    ) -> None:
        self._config = config
        self._topics = tuple(topics)
        self._observer = all_of(observer)
        self._older_than = _age(config.archive.orphan_grace, older_than)
        self._deletes = deletes
        self._clock = clock
        self._consent = consent

    def run(self) -> OrphansReport:
        """Raises failures that stop all topics; remaining ones are in the report."""
        started = time.monotonic()
        with ExitStack() as closing:
            connected = Connected(
                registry=closing.enter_context(Registry(self._config.registry.dsn)),
                catalog=closing.enter_context(TableCatalog(self._config.catalog)),
                journal=Journal.of(self._config),
                formats=FORMATS,
                now_ms=int(self._clock() * 1_000),
            )
            rows = known_topics(self._config, self._topics, connected.registry)
            done = tuple(self._topic(row, connected) for row in rows)
        report = OrphansReport(
            topics=done,
            deletes=self._deletes,
            older_than=self._older_than,
            spool_folders=self._spool_folders(),
            seconds=time.monotonic() - started,
        )
        self._observer(OrphansFinished(report=report))
        return report

    def _spool_folders(self) -> int:
        spool = self._config.archive.spool
        try:
            return clean_spool(spool) if self._deletes else len(dead_folders(spool))
        except (ConfigError, StorageError) as error:  # it belongs to another user, and this one only looks
            _LOG.warning("what dead tasks left in the spool was not looked at: %s", error)
            return 0

    def _topic(self, topic: TopicRow, connected: Connected) -> TopicOrphans:
        report = TopicOrphans(topic=topic.topic, table=topic.table)
        try:
            table = connected.catalog.require(topic)
            trail = AuditTrail(topic=topic, journal=connected.journal.of_table(table), registry=connected.registry)
            is_held = self._config.topic(topic.topic).hold
            if self._deletes:  # a database that was restored may have forgotten some, and the search asks it
                holds_in_force(topic, trail.journal, connected.registry, recalls=True)
                trail.note_hold(is_held=is_held)
            search = OrphanSearch(
                connected,
                table,
                report,
                self._observer,
                older_than=self._older_than,
                holds_all=is_held,
            )
            report.orphans = search.run()
            self._observer(OrphansFound(topic=topic.topic, orphans=len(report.orphans)))
            if self._deletes and report.orphans:
                self._ask(report)
                with noted_deletion(trail, "orphans", report):
                    remove_orphans(search, topic, report, registry=connected.registry, observer=self._observer)
            if self._deletes and search.seen:  # a store that has nothing at all is away
                report.forgotten = forget_ended(table, connected.registry, seen=search.seen)
        except ContextError as error:
            report.error = error
            self._observer(OrphanFailed(topic=topic.topic, path=None, error=error))
        return report

    def _ask(self, report: TopicOrphans) -> None:
        question = RemovalQuestion(
            topic=report.topic,
            verb="delete",
            files=len(report.orphans),
            size_bytes=sum(orphan.size for orphan in report.orphans),
            facts=tuple(orphan.path for orphan in report.orphans[:_SHOWN]),
        )
        if not self._consent(question):
            raise ConsentMissing("the question was not answered with yes: nothing was deleted", topic=report.topic)


def _age(grace: float, wanted: float | None) -> float:
    least = min(grace, LEAST_AGE)
    if wanted is not None and wanted < least:
        raise ConfigError(
            "so young a file may still be staged: give --older-than at least a day, or lower [archive] orphan_grace if "
            "every archiver of these topics is stopped",
            older_than=f"{wanted:.0f}s",
            least=f"{least:.0f}s",
            key="archive.orphan_grace",
        )
    return grace if wanted is None else wanted
