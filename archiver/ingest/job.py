"""The archive job: archives topics from Kafka to their tables, once or repeatedly (docs/concepts.md).

A run checks everything, commits what an earlier run left staged, then works in waves: plan, run tasks, stage, commit,
confirm. A topic or partition that fails doesn't stop the others. Work that is done twice is committed once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial

from archiver.config import Config, TopicConfig
from archiver.engine.runner import Engine
from archiver.engine.session import check_spark
from archiver.errors import TopicBusy
from archiver.ingest.events import Failed, JobEvent, JobObserver, RunFinished, SchemaRegistryDown, TopicsOpened
from archiver.ingest.report import JobReport, PartitionReport, TopicReport
from archiver.ingest.task.values import TopicTarget
from archiver.ingest.task.work import MODULES
from archiver.ingest.topic.catalog_pool import CatalogPool
from archiver.ingest.topic.opening import OpenedTopic, TopicLeases, open_topic, target_of
from archiver.ingest.topic.prefetch import prefetch
from archiver.ingest.topic.run import TopicMemory, TopicRun
from archiver.ingest.waves import Waves, failing
from archiver.kafka.broker import BrokerClient
from archiver.observer import all_of, ignore
from archiver.schemas.topic_schemas import SchemaReader, TopicSchemas
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.journal import Journal
from archiver.storage.spool import clean_spool
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry import Registry
from schema_mapping.errors import ContextError

__all__ = ["ArchiveJob", "JobEvent", "JobObserver", "JobReport", "PartitionReport", "TopicReport"]

_LOG = logging.getLogger(__name__)


class ArchiveJob:
    """Archives `topics` (default: all that the configuration selects) as `config` says.

    `observer` gets every event (`archiver.ingest.events`); its errors don't stop the job. `engine` runs the tasks: by
    default Spark as configured, which starts with the first task. With `accept_gaps`, offsets that a log lost before
    they were archived are recorded as lost, and the partition continues. `read_schemas` reads a topic's schemas, by
    default those that its settings name.
    """

    def __init__(
        self,
        config: Config,
        topics: Sequence[str] | None = None,
        observer: JobObserver = ignore,
        *,
        engine: Engine | None = None,
        formats: SegmentFormats = FORMATS,
        accept_gaps: bool = False,
        read_schemas: SchemaReader = TopicSchemas.read_or_recall,
    ) -> None:
        self._config = config
        self._topics = tuple(topics or ())
        self._observer = all_of(observer)
        self._engine = engine
        self._formats = formats
        self._accept_gaps = accept_gaps
        self._read_schemas = read_schemas
        self._memories: dict[str, TopicMemory] = {}

    def run_once(self, stop: threading.Event | None = None) -> JobReport:
        """Archive every topic up to where its log ends now.

        Raises what is wrong with the configuration, and what keeps the whole job from starting. Errors of a topic or a
        partition are in the report. Once `stop` is set, running tasks end and finished ranges are committed.
        """
        with self._connect() as connected:
            return self._run(connected, stop or threading.Event(), look_every=None)

    def run_every(self, seconds: float, stop: threading.Event) -> JobReport:
        """Archive repeatedly until `stop` is set; each run begins `seconds` after the one before began.

        A partition with few new records waits for `min_file_size` or `max_lag`; the first run archives everything. The
        observer gets each run's report; the last one is returned. A retryable error ends only its run.
        """
        with self._connect() as connected:
            report = JobReport(topics=(), waves=0, seconds=0.0, stopped=True)
            while not stop.is_set():
                started = time.monotonic()
                try:
                    report = self._run(connected, stop, look_every=seconds).following(report)
                except ContextError as error:
                    if not error.retryable:
                        raise
                    report = JobReport(topics=(), waves=0, seconds=time.monotonic() - started, error=error)
                    self._observer(RunFinished(report=report))
                stop.wait(max(0.0, started + seconds - time.monotonic()))
            return report

    @contextmanager
    def _connect(self) -> Iterator[_Connected]:
        """Check what needs no servers, then connect to the servers. Everything is closed at the end."""
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
        with connected.registry.leases() as held:
            runs, refused = self._open_topics(connected, TopicLeases(held), stop, look_every)
            self._observer(TopicsOpened(tables={run.name: run.config.table for run in runs}))
            for run in runs:
                with failing(run):
                    run.begin()
            waves = Waves(
                runs,
                prefetch=partial(prefetch, catalogs=connected.catalogs, brokers=connected.brokers, stop=stop),
                targets=self._target,
                engine=lambda: self._engine or connected.engine,
                settings=self._config.archive,
                observer=self._observer,
                stop=stop,
            ).run()
            if not held.are_held():
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
        self, connected: _Connected, leases: TopicLeases, stop: threading.Event, look_every: float | None
    ) -> tuple[list[TopicRun], list[TopicReport]]:
        """The runs of topics that can be archived, and the reports of those that can't be.

        Leases, brokers and catalog are asked for all topics together.
        """
        topics = self._configured(connected.brokers)
        known = connected.known_topics()
        busy = leases.take([known[topic.name] for topic in topics if topic.name in known])
        connected.brokers.refresh([topic.name for topic in topics])
        runs: list[TopicRun] = []
        refused: list[TopicReport] = []
        for topic, loaded in connected.catalogs.each(topics, partial(_load, known=known, busy=busy), stop):
            try:
                if topic.name in busy:
                    raise _busy(topic.name)
                opened = self._open(topic, known.get(topic.name), connected, loaded)
                if leases.take([opened.topic]):
                    raise _busy(topic.name)
                runs.append(self._run_of(topic, opened, connected, look_every))
            except ContextError as error:
                refused.append(TopicReport(topic=topic.name, table=topic.table, error=error))
                self._observer(Failed(topic=topic.name, partition=None, error=error))
        return runs, refused

    def _open(
        self,
        topic: TopicConfig,
        known: TopicRow | None,
        connected: _Connected,
        loaded: Future[ArchiveTable | None],
    ) -> OpenedTopic:
        """Open the topic; while its schema registry doesn't answer, with the schemas that were last known."""
        section, registry = self._config.schema_registry, connected.registry
        schemas = self._read_schemas(topic, section, known=known, registry=registry)
        opened = open_topic(
            schemas,
            connected.brokers.described(topic.name),
            cluster_id=connected.cluster_id,
            known=known,
            registry=registry,
            catalog=connected.catalog,
            loaded=loaded,
            journal=Journal.of(self._config),
        )
        if schemas.schema_registry is not None:
            registry.last_known.remember_schemas(opened.topic, schemas.schema_registry, schemas.news)
        if schemas.schema_registry_down is not None:
            self._observer(SchemaRegistryDown(topic=topic.name, error=schemas.schema_registry_down))
        return opened

    def _run_of(
        self, topic: TopicConfig, opened: OpenedTopic, connected: _Connected, look_every: float | None
    ) -> TopicRun:
        return TopicRun(
            topic,
            opened,
            brokers=connected.brokers,
            registry=connected.registry,
            catalog=connected.catalog,
            observer=self._observer,
            memory=self._memories.setdefault(topic.name, TopicMemory()),
            look_every=look_every,
            accept_gaps=self._accept_gaps,
            formats=self._formats,
        )

    def _target(self, run: TopicRun) -> TopicTarget:
        return target_of(run.opened, run.config, kafka=self._config.kafka, format_=self._formats.written)


class _Connected:
    """The servers that a job is connected to. The engine starts when it is first asked for."""

    def __init__(
        self, config: Config, *, brokers: BrokerClient, registry: Registry, catalog: TableCatalog, closing: ExitStack
    ) -> None:
        self._config = config
        self._closing = closing
        self.brokers = brokers
        self.registry = registry
        self.catalog = catalog
        self.catalogs = closing.enter_context(
            CatalogPool(lambda: TableCatalog(config.catalog, may_be_away=True), most=config.archive.catalog_connections)
        )
        self.cluster_id = brokers.cluster_id()

    def known_topics(self) -> dict[str, TopicRow]:
        """The registry's topics of this cluster, by name."""
        return {row.topic: row for row in self.registry.topics.every() if row.cluster_id == self.cluster_id}

    @cached_property
    def engine(self) -> Engine:
        from archiver.engine.spark import SparkEngine

        return self._closing.enter_context(SparkEngine.start(self._config.spark, preloaded=MODULES))


def _load(
    topic: TopicConfig, catalog: TableCatalog, *, known: Mapping[str, TopicRow], busy: Container[str]
) -> ArchiveTable | None:
    """Load the table of a registered topic. None for topics that aren't registered or that others archive now."""
    row = known.get(topic.name)
    return None if row is None or topic.name in busy else catalog.load(row)


def _busy(topic: str) -> TopicBusy:
    return TopicBusy("Another archiver is at work on the topic; this one leaves it alone", topic=topic)
