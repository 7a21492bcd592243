"""Archive topics to tables, once or repeatedly (docs/concepts.md).

Failures are isolated by topic and partition. Repeated work is committed once.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final
from uuid import UUID

from archiver.audit.checkpoints import load_key
from archiver.chores.runner import ChoreRunner, ChoreTopic
from archiver.chores.tidying import TIDYING
from archiver.commit.commit_staged import StagedTopic
from archiver.commit.compare_rows import Allowance
from archiver.config import Config, TopicConfig
from archiver.config.topics import internal_hint, unmatched
from archiver.engine.classic_settings import runs_here
from archiver.engine.runner import Engine
from archiver.engine.session import check_spark
from archiver.errors import ConfigError, TopicBusy, UnknownTopic
from archiver.index.columns import check_columns
from archiver.ingest.commits import failing
from archiver.ingest.events import (
    Failed,
    JobEvent,
    JobObserver,
    JobWaiting,
    RunFinished,
    SchemaChangeWaiting,
    SchemaRegistryDown,
    TableNoted,
    TopicsOpened,
)
from archiver.ingest.job_servers import JobServers, server_of
from archiver.ingest.report import JobReport, PartitionReport, TopicReport
from archiver.ingest.task.values import TopicTarget
from archiver.ingest.topic.acceptance import NOTHING_ACCEPTED, AcceptedLosses
from archiver.ingest.topic.memory import TopicMemory
from archiver.ingest.topic.prefetch import prefetch
from archiver.ingest.topic.run import RunTerms, TopicRun
from archiver.ingest.topic.target import target_of
from archiver.ingest.waves import Waves, WaveSteps
from archiver.kafka.broker import BrokerClient
from archiver.kafka.options import parse_kafka_options
from archiver.observer import all_of, ignore
from archiver.schemas.topic_schemas import SchemaReader, TopicSchemas
from archiver.storage.formats import FORMATS
from archiver.storage.journal import Journal
from archiver.storage.spool import check_spool, clean_spool
from archiver.topics.leases import TopicLeases
from archiver.topics.ledgers_ahead import LedgersAhead
from archiver.topics.opening import OpenedTopic, RegisteredTopic, TopicServers, open_topic
from archiver.topics.schema_choice import WaitingChange
from archiver.topics.table_notes import table_notes
from catalog.errors import RegistryError
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.registry.postgres import check_dsn
from schema_mapping.errors import ContextError

__all__ = ["ArchiveJob", "JobEvent", "JobObserver", "JobReport", "PartitionReport", "TopicReport"]

_RECONNECT_SECONDS: Final = 10.0
"""How long a job that repeats pauses before it tries again to connect, at its start."""

_LEAST_IDLE_SECONDS: Final = 2.0
"""No chore begins in less time."""

_LOG = logging.getLogger(__name__)


class ArchiveJob:
    """Archive `topics`, by default all that `config` selects.

    `engine` defaults to Spark. Accepted losses are recorded, `unreadable` ones only by `run_once`.
    """

    def __init__(
        self,
        config: Config,
        topics: Sequence[str] | None = None,
        observer: JobObserver = ignore,
        *,
        engine: Engine | None = None,
        accepts: AcceptedLosses = NOTHING_ACCEPTED,
        read_schemas: SchemaReader = TopicSchemas.read_or_recall,
        chores: ChoreRunner | None = None,
    ) -> None:
        self._config = config
        self._topics = tuple(topics or ())
        self._observer = all_of(observer)
        self._engine = engine
        self._accepts = accepts
        self._journal = Journal.of(config)
        self._read_schemas = read_schemas
        self._chores = chores or ChoreRunner((TIDYING,))
        self._opened: dict[str, StagedTopic] = {}
        self._memories: dict[tuple[UUID, UUID | None], TopicMemory] = {}
        self._waits_for: tuple[str, str] | None = None
        self._told_patterns: set[str] = set()
        self._waiting_schemas: dict[str, str | None] = {}
        self._versions: dict[str, int] = {}
        self._has_opened = False

    def run_once(self, stop: threading.Event | None = None) -> JobReport:
        """Archive every topic up to its current log end. After `stop`, finished ranges are committed.

        Raises configuration and start-up errors; errors of topics are in the report.
        """
        self.check()
        with self._connect() as connected:
            return self._run(connected, stop or threading.Event(), look_every=None)

    def run_every(self, seconds: float, stop: threading.Event) -> JobReport:
        """Archive every `seconds` (start to start) until `stop`; return the last report. Raises ConfigError.

        After the first run, few new records wait for `min_file_size` or `max_lag`. Waits for servers and matching
        topics. Retryable errors end only their run.
        """
        if self._accepts.unreadable:
            raise ConfigError("--accept-unreadable needs somebody to look first: give it with --once")
        report = JobReport(topics=(), waves=0, seconds=0.0, stopped=True)
        self.check()
        with ExitStack() as closing:
            connected = self._connect_once_up(closing, stop, pause=min(seconds, _RECONNECT_SECONDS))
            while connected is not None and not stop.is_set():
                started = time.monotonic()
                try:
                    report = self._run(connected, stop, look_every=seconds).following(report)
                except ContextError as error:
                    if not error.retryable:
                        raise
                    report = JobReport(topics=(), waves=0, seconds=time.monotonic() - started, error=error)
                    self._observer(RunFinished(report=report))
                self._use_idle_time(connected, report, stop, until=started + seconds)
                stop.wait(max(0.0, started + seconds - time.monotonic()))
            return report

    def _use_idle_time(self, connected: JobServers, report: JobReport, stop: threading.Event, *, until: float) -> None:
        def is_over() -> bool:
            return stop.is_set() or time.monotonic() + _LEAST_IDLE_SECONDS > until

        names = [topic.topic for topic in report.topics if not topic.failures and topic.topic in self._opened]
        topics = [ChoreTopic(topic=self._opened[name].topic, opened=self._opened[name]) for name in names]
        self._chores.run(
            "when idle",
            topics,
            connected.registry,
            is_over=is_over,
            engine=lambda: self._engine or connected.engine,
        )

    def check(self) -> None:
        """Raises ConfigError. Schema errors wait for the run, unless all topics have some."""
        if self._engine is None:
            check_spark(self._config.spark)
            if runs_here(self._config.spark):
                check_spool(self._config.archive.spool)
        if self._config.audit.signing_key is not None:
            load_key(self._config.audit.signing_key)  # read once: what becomes of the file later stops nothing
        check_dsn(self._config.registry.dsn)
        topics = [self._config.kafka_topic(name) for name in self._topics or self._config.kafka_sections]
        if not topics:
            self._config.select_kafka(())
        parse_kafka_options(self._config.kafka)
        unreadable = []
        for topic in topics:
            try:
                TopicSchemas.check(topic, self._config.schema_registry)
            except ConfigError as error:
                unreadable.append(error)
        if unreadable and len(unreadable) == len(topics):
            raise unreadable[0]

    def _connect_once_up(self, closing: ExitStack, stop: threading.Event, *, pause: float) -> JobServers | None:
        while not stop.is_set():
            try:
                return closing.enter_context(self._connect())
            except ContextError as error:
                if not error.retryable:
                    raise
                self._wait_for(server_of(error), error)
            stop.wait(pause)
        return None

    def _wait_for(self, on: str, error: ContextError) -> None:
        reason = (on, error.message)
        if reason != self._waits_for:
            self._waits_for = reason
            self._observer(JobWaiting(on=on, error=error))

    @contextmanager
    def _connect(self) -> Iterator[JobServers]:
        with ExitStack() as closing:
            brokers = closing.enter_context(BrokerClient(self._config.kafka))
            brokers.cluster_id()  # query Kafka before Postgres, so that errors come in this order
            threads = 1 + self._config.archive.catalog_connections
            registry = closing.enter_context(Registry(self._config.registry.dsn, connections=threads))
            catalog = closing.enter_context(TableCatalog(self._config.catalog, may_be_away=True))
            yield JobServers(self._config, brokers=brokers, registry=registry, catalog=catalog, closing=closing)

    def _configured(self, brokers: BrokerClient, *, waits: bool) -> tuple[TopicConfig, ...]:
        existing = () if self._topics else brokers.topics()
        topics = self._config.select_kafka(existing, self._topics, may_be_none=waits)
        if topics:
            self._waits_for = None
            if waits and not self._topics:
                self._tell_unmatched(existing)
        else:
            error = UnknownTopic("No topic of the cluster matches yet", patterns=list(self._config.sections))
            self._wait_for("topics", error)
        return topics

    def _tell_unmatched(self, existing: Iterable[str]) -> None:
        missing = [name for name in unmatched(existing, self._config.sections) if name not in self._told_patterns]
        self._told_patterns.update(missing)
        for pattern in missing:
            hint = internal_hint(pattern)
            _LOG.warning("no topic of the cluster matches the section [topics.%s] yet%s", json.dumps(pattern), hint)

    def _run(self, connected: JobServers, stop: threading.Event, *, look_every: float | None) -> JobReport:
        started = time.monotonic()
        clean_spool(self._config.archive.spool)
        with connected.registry.leases() as leases:
            runs, refused = self._open_topics(connected, TopicLeases(leases), stop, look_every)
            self._observer(TopicsOpened(tables={run.name: run.config.table for run in runs}))
            staged = _with_staged(runs, connected.registry)
            for run in runs:
                with failing(run):
                    run.begin(has_staged=run.opened.topic.id in staged)
            waves = Waves(
                runs,
                WaveSteps(
                    prefetch=partial(prefetch, catalogs=connected.catalogs, brokers=connected.brokers, stop=stop),
                    in_thread=connected.catalogs.begin,
                    target=self._target,
                    engine=lambda: self._engine or connected.engine,
                ),
                settings=self._config.archive,
                observer=self._observer,
                stop=stop,
            ).run()
            _compare(runs, stop)
            self._opened = {run.name: run.opened.staged for run in runs}
            if not leases.are_held():
                _LOG.warning(
                    "the connection to Postgres that held the leases of %d topics broke in the run: other archivers may"
                    " have worked on them too. Nothing is lost or there twice by that; the next run takes them again",
                    len(runs),
                )
        report = JobReport(
            topics=tuple(sorted([*refused, *(run.report() for run in runs)], key=lambda topic: topic.topic)),
            waves=waves,
            seconds=time.monotonic() - started,
            stopped=stop.is_set(),
        )
        self._observer(RunFinished(report=report))
        return report

    def _open_topics(
        self, connected: JobServers, leases: TopicLeases, stop: threading.Event, look_every: float | None
    ) -> tuple[list[TopicRun], list[TopicReport]]:
        topics = self._configured(connected.brokers, waits=look_every is not None)
        registered = connected.known_topics()
        busy = leases.take([registered[topic.name] for topic in topics if topic.name in registered])
        connected.brokers.refresh([topic.name for topic in topics])
        free = [registered[topic.name] for topic in topics if topic.name in registered and topic.name not in busy]
        ledgers = LedgersAhead(connected.registry, free)
        sharing = connected.refused_to_share(topics)
        runs: list[TopicRun] = []
        refused: list[TopicReport] = []
        for topic, loaded in connected.catalogs.each(topics, partial(_load, known=registered, busy=busy), stop):
            try:
                if topic.name in sharing:
                    raise sharing[topic.name]
                if topic.name in busy:
                    raise _busy(topic.name)
                opened = self._open(topic, registered.get(topic.name), connected, loaded, ledgers)
                if leases.take([opened.topic]):
                    raise _busy(topic.name)
                runs.append(self._run_of(topic, opened, connected, stop, look_every))
            except ContextError as error:
                refused.append(TopicReport(topic=topic.name, table=topic.table, error=error))
                self._observer(Failed(topic=topic.name, partition=None, error=error))
        self._has_opened = True
        return runs, refused

    def _open(
        self,
        topic: TopicConfig,
        known: TopicRow | None,
        connected: JobServers,
        loaded: Future[ArchiveTable | None],
        ledgers: LedgersAhead,
    ) -> OpenedTopic:
        """Use the last known schemas if the schema registry is down."""
        section, registry = self._config.schema_registry, connected.registry
        schemas = self._read_schemas(topic, section, known=known, registry=registry)
        opened = open_topic(
            schemas,
            connected.brokers.described(topic.name),
            RegisteredTopic(row=known, loaded=loaded, seen=None if known is None else ledgers.take(known)),
            TopicServers(
                registry=registry, catalog=connected.catalog, journal=self._journal, check_columns=check_columns
            ),
            cluster_id=connected.cluster_id,
            accept_raw=self._accepts.raw,
            notes_hold=not self._has_opened,  # later the file may say something else, which others may have noted
        )
        version = opened.row.schema_version
        if known is None or self._versions.get(topic.name, version) != version:
            self._note_table(opened, is_first=known is None)
        self._versions[topic.name] = version
        self._report_waiting(topic.name, opened.waiting)
        if schemas.schema_registry is not None:
            registry.last_known.remember_schemas(opened.topic, schemas.schema_registry, schemas.news)
        if schemas.schema_registry_down is not None:
            self._observer(SchemaRegistryDown(topic=topic.name, error=schemas.schema_registry_down))
        return opened

    def _note_table(self, opened: OpenedTopic, *, is_first: bool) -> None:
        if notes := table_notes(opened.change.schema, self._config.catalog if is_first else {}):
            self._observer(TableNoted(topic=opened.topic.topic, notes=notes))

    def _report_waiting(self, topic: str, waiting: WaitingChange | None) -> None:
        fingerprint = None if waiting is None else waiting.candidate.fingerprint
        if self._waiting_schemas.get(topic) != fingerprint:
            self._observer(SchemaChangeWaiting(topic=topic, changes=() if waiting is None else waiting.changes))
        self._waiting_schemas[topic] = fingerprint

    def _run_of(
        self,
        topic: TopicConfig,
        opened: OpenedTopic,
        connected: JobServers,
        stop: threading.Event,
        look_every: float | None,
    ) -> TopicRun:
        def after_commit(staged: StagedTopic) -> None:
            on = ChoreTopic(topic=staged.topic, opened=staged)
            self._chores.run("after commit", (on,), connected.registry, is_over=stop.is_set)

        return TopicRun(
            topic,
            opened,
            connected,
            observer=self._observer,
            memory=self._memory(opened),
            terms=RunTerms(look_every=look_every, accepts=self._accepts, after_commit=after_commit),
        )

    def _memory(self, opened: OpenedTopic) -> TopicMemory:
        return self._memories.setdefault((opened.table.uuid, opened.topic.topic_id), TopicMemory())

    def _target(self, run: TopicRun) -> TopicTarget:
        return target_of(
            run.opened,
            run.config,
            kafka=self._config.kafka,
            format_=FORMATS.written,
            pending_bytes=self._config.archive.partition_memory,
        )


def _with_staged(runs: Sequence[TopicRun], registry: Registry) -> frozenset[int]:
    """Topics with staged leftovers: all if Postgres doesn't answer."""
    topics = [run.opened.topic for run in runs]
    try:
        return registry.files.topics_with_staged(topics)
    except RegistryError:
        return frozenset(topic.id for topic in topics)  # each asks by itself, and fails by itself


def _compare(runs: Sequence[TopicRun], stop: threading.Event) -> None:
    """In random order of topics for fairness."""
    allowance = Allowance(stop=stop)
    for run in secrets.SystemRandom().sample(runs, len(runs)):
        with failing(run):
            run.compare(allowance)


def _load(
    topic: TopicConfig, catalog: TableCatalog, *, known: Mapping[str, TopicRow], busy: Container[str]
) -> ArchiveTable | None:
    row = known.get(topic.name)
    return None if row is None or topic.name in busy else catalog.load(row)


def _busy(topic: str) -> TopicBusy:
    return TopicBusy("Another archiver is at work on the topic; this one leaves it alone", topic=topic)
