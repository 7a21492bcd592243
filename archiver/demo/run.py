"""Runs the demo."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from archiver.audit.trail import author
from archiver.config import load_config
from archiver.demo import compare, produce, settings
from archiver.demo.flights import FLIGHTS, events, read_flights
from archiver.demo.questions import QUESTIONS
from archiver.demo.screen import Stages, Summary, show_answer, show_summary
from archiver.engine.spark import SparkEngine
from archiver.errors import ConfigError, ReplayError
from archiver.ingest.job import ArchiveJob
from archiver.ingest.report import JobReport
from archiver.ingest.task.work import MODULES
from archiver.local import Endpoints, LocalStack
from archiver.local.fetch import fetch_iceberg
from archiver.local.screen import followed
from archiver.replay import ReplayConsumer
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.terminal.console import TextConsole
from archiver.topics.schema_approval import approve_change
from archiver.upkeep.archived_topic import known_topics
from catalog.digests import add_digests
from catalog.registry import Registry

_SPLIT = FLIGHTS // 2


class Demo:
    """Leaves the stack running."""

    def __init__(self, folder: Path, console: TextConsole) -> None:
        self._folder = folder
        self._console = console
        self._stages = Stages(console)
        self._payload_bytes = 0

    def run(self) -> Endpoints:
        """Raises if anything differs or fails."""
        started = time.monotonic()
        endpoints = self._start()
        config = settings.write_config(endpoints)
        with ThreadPoolExecutor(1) as pool:
            spark = pool.submit(_start_spark, endpoints)
            self._produce_first_half(endpoints)
            with self._stages.step("Start Spark"):
                engine = spark.result()
        with engine:
            reports = [self._archive(config, engine, "Archive the first half of the year")]
            self._produce_second_half(endpoints)
            self._approve(config)
            reports.append(self._archive(config, engine, "Archive the rest, with the new schema"))
            self._ask(engine)
        records = self._compare(endpoints, config)
        digest = self._add_up(config, reports)
        show_summary(self._console, self._summary(reports, records, digest, time.monotonic() - started))
        return endpoints

    def _start(self) -> Endpoints:
        with self._stages.step("Start Kafka, Postgres, S3 and the catalog"), followed(self._console) as progress:
            endpoints = LocalStack(self._folder).up(progress)
        fetch_iceberg(lambda step: self._console.print(f"  {step}", style="dim"))
        return endpoints

    def _produce_first_half(self, endpoints: Endpoints) -> None:
        message = settings.deploy_schema(self._folder, 1)
        produce.create_topic(endpoints.bootstrap_servers, settings.TOPIC)
        self._produce(endpoints, read_flights().slice(0, _SPLIT), message, "Produce flights, January to June")
        with self._stages.step(f"Abort a transaction of {produce.ABORTED_RECORDS} records"):
            produce.abort_some(endpoints.bootstrap_servers, settings.TOPIC)

    def _produce_second_half(self, endpoints: Endpoints) -> None:
        message = settings.deploy_schema(self._folder, 2)
        self._produce(endpoints, read_flights().slice(_SPLIT), message, "Produce the rest: one field renamed, one new")

    def _approve(self, config: Path) -> None:
        loaded = load_config(config)
        with self._stages.step("Approve the renamed field"), Registry(loaded.registry.dsn, connections=1) as registry:
            (row,) = known_topics(loaded, (settings.TOPIC,), registry)
            schemas = TopicSchemas.read_or_recall(
                loaded.topic(settings.TOPIC), loaded.schema_registry, known=row, registry=registry
            )
            approve_change(row, schemas, registry, consent=lambda _: True, by=author(loaded.audit).principal)

    def _produce(self, endpoints: Endpoints, flights: pa.Table, message: type, title: str) -> None:
        with self._stages.step(title, total=flights.num_rows) as advance:
            made = events(flights, message)
            self._payload_bytes += produce.produce(endpoints.bootstrap_servers, settings.TOPIC, made, advance)

    def _archive(self, config: Path, engine: SparkEngine, title: str) -> JobReport:
        with self._stages.step(title):
            report = ArchiveJob(load_config(config), [settings.TOPIC], engine=engine).run_once()
        for topic in report.topics:
            for _, error in topic.failures:
                raise error
        return report

    def _ask(self, engine: SparkEngine) -> None:
        table = f"{settings.CATALOG}.{settings.TABLE}"
        for question in QUESTIONS:
            with self._stages.step(f"Ask Spark SQL: {question.text}"):
                answer = engine.session.sql(question.sql.format(table=table))
                rows = [tuple(row) for row in answer.collect()]
            if not rows:
                raise ReplayError("Spark SQL found nothing in the table", table=table)
            show_answer(self._console, "", answer.columns, rows)

    def _compare(self, endpoints: Endpoints, config: Path) -> int:
        kafka = compare.broker_consumer(endpoints.bootstrap_servers)
        archive = ReplayConsumer(load_config(config), {"enable.partition.eof": True})
        try:
            with self._stages.step("Compare what Kafka serves with what the table gives back", FLIGHTS) as advance:
                records = compare.compare(kafka, archive, settings.TOPIC, produce.PARTITIONS, advance)
        finally:
            kafka.close()
            archive.close()
        if records < FLIGHTS:
            raise ReplayError("Fewer records came back than there were flights", records=records, flights=FLIGHTS)
        return records

    def _add_up(self, config: Path, reports: list[JobReport]) -> str:
        recorded = add_digests(topic.digest for report in reports for topic in report.topics)
        with (
            self._stages.step("Compare the digests of the files with that of the replay"),
            ReplayConsumer(load_config(config)) as archive,
        ):
            replayed = compare.digest(archive, settings.TOPIC, produce.PARTITIONS).text
        if recorded != replayed:
            raise ReplayError("Files and replay have different digests", files=recorded, replay=replayed)
        return replayed

    def _summary(self, reports: list[JobReport], records: int, digest: str, seconds: float) -> Summary:
        topics = [topic for report in reports for topic in report.topics]
        archived = sum(topic.records for topic in topics)
        if archived != records:
            raise ReplayError("The job and the replay count differently", archived=archived, replayed=records)
        raw = sum(part.raw_values for topic in topics for part in topic.partitions)
        return Summary(
            records=records,
            payload_bytes=self._payload_bytes,
            log_bytes=sum(topic.metrics.source_bytes for topic in topics),
            stored_bytes=sum(topic.file_bytes for topic in topics),
            files=sum(topic.files for topic in topics),
            raw_share=raw / archived,
            raw_values=raw,
            digest=digest,
            seconds=self._stages.seconds,
            total_seconds=seconds,
        )


def _start_spark(endpoints: Endpoints) -> SparkEngine:
    options = settings.sql_options(endpoints, fetch_iceberg(lambda _: None))
    return SparkEngine.start({"master": "local[2]", **options}, preloaded=MODULES)


def check_folder(folder: Path) -> None:
    """Raises ConfigError unless the folder is empty or missing."""
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError("The demo wants an empty folder; name another with --dir", dir=str(folder))
