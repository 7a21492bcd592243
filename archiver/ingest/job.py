"""The job: archives topics from Kafka to their tables, once or again and again (docs/concepts.md).

A run checks everything, commits what a predecessor left staged, then works in waves: plan, run tasks, stage, commit,
confirm. Topics don't depend on each other's failures, nor do partitions; nothing done twice is there twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property

from archiver.config import Config, TopicConfig
from archiver.engine.runner import Engine
from archiver.engine.session import check_spark
from archiver.errors import TopicBusy
from archiver.ingest.broker import BrokerClient
from archiver.ingest.observer import JobObserver, SilentObserver
from archiver.ingest.report import JobReport, PartitionReport, TopicReport
from archiver.ingest.task import MODULES
from archiver.ingest.task_values import TopicTarget
from archiver.ingest.topic_memory import TopicMemory
from archiver.ingest.topic_run import TopicRun
from archiver.ingest.topic_table import open_topic, target_of
from archiver.ingest.waves import Waves, failing
from archiver.schemas.topic import TopicSchemas
from archiver.storage.journal import Journal
from archiver.storage.parquet import ParquetFormat
from archiver.storage.segment import SegmentFormat
from archiver.storage.spool import clean_spool
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.tables import TableCatalog
from schema_mapping.errors import ContextError

__all__ = ["ArchiveJob", "JobObserver", "JobReport", "PartitionReport", "SilentObserver", "TopicReport"]

_LEASE_TRIES = 5
_LEASE_PAUSE_SECONDS = 1.0


class ArchiveJob:
    """Archives `topics` (default: all that the configuration speaks for) by `config`.

    `engine` runs the tasks; by default Spark, as the configuration says, started when there is a first task. With
    `accept_gaps`, offsets that a log lost before they were archived are recorded as lost, and the partition goes on.
    """

    def __init__(
        self,
        config: Config,
        topics: Sequence[str] | None = None,
        observer: JobObserver | None = None,
        *,
        engine: Engine | None = None,
        format_: SegmentFormat | None = None,
        accept_gaps: bool = False,
    ) -> None:
        self._config = config
        self._topics = tuple(topics or ())
        self._observer = observer or SilentObserver()
        self._engine = engine
        self._format = format_ or ParquetFormat()
        self._accept_gaps = accept_gaps
        self._memories: dict[str, TopicMemory] = {}

    def run_once(self, stop: threading.Event | None = None) -> JobReport:
        """Archive every topic to where its log ends now.

        Raises what is wrong with the configuration or keeps the whole job from starting; what happens to a topic or
        partition is in the report. Once `stop` is set, running tasks end and what is done is committed.
        """
        with self._connect() as connected:
            return self._run(connected, stop or threading.Event(), look_every=None)

    def run_every(self, seconds: float, stop: threading.Event) -> JobReport:
        """Archive again and again, each run `seconds` after the one before began, until `stop` is set.

        A partition with little new waits for `min_file_size` or `max_lag`; the first run archives everything.
        The observer gets each run's report; the last one is returned. Errors that may pass end only their run.
        """
        with self._connect() as connected:
            report = JobReport(topics=(), waves=0, seconds=0.0, stopped=True)
            while not stop.is_set():
                started = time.monotonic()
                try:
                    report = self._run(connected, stop, look_every=seconds)
                except ContextError as error:
                    if not error.retryable:
                        raise
                    report = JobReport(topics=(), waves=0, seconds=time.monotonic() - started, error=error)
                    self._observer.finished(report)
                stop.wait(max(0.0, started + seconds - time.monotonic()))
            return report

    @contextmanager
    def _connect(self) -> Iterator[_Connected]:
        """Check what can be checked here, then the servers; everything is closed at the end."""
        if self._engine is None:
            check_spark(self._config.spark)
        with ExitStack() as closing:
            brokers = closing.enter_context(BrokerClient(self._config.kafka))
            for topic in self._configured(brokers):
                TopicSchemas.check(topic, self._config.schema_registry)
            registry = closing.enter_context(Registry(self._config.registry.dsn))
            catalog = closing.enter_context(TableCatalog(self._config.catalog, may_be_away=True))
            yield _Connected(self._config, brokers=brokers, registry=registry, catalog=catalog, closing=closing)

    def _configured(self, brokers: BrokerClient) -> tuple[TopicConfig, ...]:
        existing = () if self._topics else brokers.topics()
        return self._config.select(existing, self._topics)

    def _run(self, connected: _Connected, stop: threading.Event, *, look_every: float | None) -> JobReport:
        started = time.monotonic()
        clean_spool(self._config.archive.spool)
        refused: list[TopicReport] = []
        with ExitStack() as leases:
            runs: list[TopicRun] = []
            for topic in self._configured(connected.brokers):
                try:
                    runs.append(self._open(self._schemas(topic, connected), connected, leases, look_every))
                except ContextError as error:
                    refused.append(TopicReport(topic=topic.name, table=topic.table, error=error))
                    self._observer.failed(topic.name, None, error)
            self._observer.topics_opened({run.name: run.config.table for run in runs})
            for run in runs:
                with failing(run):
                    run.commit()
            waves = Waves(
                runs,
                targets=self._target,
                engine=lambda: self._engine or connected.engine,
                settings=self._config.archive,
                observer=self._observer,
                stop=stop,
            ).run()
        report = JobReport(
            topics=tuple(sorted([*refused, *(run.report() for run in runs)], key=lambda topic: topic.topic)),
            waves=waves,
            seconds=time.monotonic() - started,
            stopped=stop.is_set(),
        )
        self._observer.finished(report)
        return report

    def _schemas(self, topic: TopicConfig, connected: _Connected) -> TopicSchemas:
        """The topic's schemas, by what is remembered of the schema registry while that can't be asked."""
        known = connected.registry.find(cluster_id=connected.cluster_id, topic=topic.name)
        section = self._config.schema_registry
        return TopicSchemas.read_or_recall(topic, section, known=known, registry=connected.registry)

    def _open(
        self, schemas: TopicSchemas, connected: _Connected, leases: ExitStack, look_every: float | None
    ) -> TopicRun:
        name = schemas.config.name
        opened = open_topic(
            schemas,
            connected.brokers.describe([name])[name],
            cluster_id=connected.cluster_id,
            registry=connected.registry,
            catalog=connected.catalog,
            journal=Journal.of(self._config),
        )
        if schemas.registry is not None:
            connected.registry.remember_schemas(opened.topic, schemas.registry, schemas.news)
        if schemas.registry_down is not None:
            self._observer.schema_registry_down(name, schemas.registry_down)
        _take_lease(connected.registry, opened.topic, leases)
        return TopicRun(
            schemas.config,
            opened,
            brokers=connected.brokers,
            registry=connected.registry,
            catalog=connected.catalog,
            observer=self._observer,
            memory=self._memories.setdefault(name, TopicMemory()),
            look_every=look_every,
            accept_gaps=self._accept_gaps,
        )

    def _target(self, run: TopicRun) -> TopicTarget:
        return target_of(run.opened, run.config, kafka=self._config.kafka, format_=self._format)


class _Connected:
    """What a job is connected to. The engine starts when it is first asked for."""

    def __init__(
        self, config: Config, *, brokers: BrokerClient, registry: Registry, catalog: TableCatalog, closing: ExitStack
    ) -> None:
        self._config = config
        self._closing = closing
        self.brokers = brokers
        self.registry = registry
        self.catalog = catalog
        self.cluster_id = brokers.cluster_id()

    @cached_property
    def engine(self) -> Engine:
        from archiver.engine.spark import SparkEngine

        return self._closing.enter_context(SparkEngine.start(self._config.spark, preloaded=MODULES))


def _take_lease(registry: Registry, topic: TopicRow, leases: ExitStack) -> None:
    """Hold the topic's lease until `leases` close. Raises TopicBusy where another archiver holds it for long."""
    for attempt in range(_LEASE_TRIES):
        if attempt:
            time.sleep(_LEASE_PAUSE_SECONDS)
        with ExitStack() as held:
            if held.enter_context(registry.lease(topic)):
                leases.push(held.pop_all())
                return
    raise TopicBusy("Another archiver is at work on the topic; this one leaves it alone", topic=topic.topic)
