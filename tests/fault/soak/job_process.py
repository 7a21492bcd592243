"""A job's process: one command with short patience."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from archiver.config import Config, load_config
from archiver.ingest.job import ArchiveJob
from archiver.ingest.stopping import stop_on_signals
from archiver.ingest.topic.acceptance import AcceptedLosses
from archiver.records.where import Where
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.erase.job import Erase
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.reconcile import reconcile
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire, ExpireOptions
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import TopicRow
from catalog.registry.leases import Leases
from schema_mapping.errors import ContextError
from tests.fault.soak.jobs import TELLS, Failure, Job, Verb
from tests.support.engine.inline_engine import InlineEngine

__all__ = ["run"]

_DAY_SECONDS = 86_400.0
CATALOG_TIMEOUT_SECONDS = 3.0
"""How long a job waits for an answer of the catalog here; a silence is longer."""


def run(job: Job, base: Path) -> None:
    with base.with_suffix(".log").open("wb") as log:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(log.fileno(), stream.fileno())
    faulthandler.register(TELLS, file=sys.__stderr__, all_threads=True)
    os.environ.pop("ARCHIVER_FAULT", None)
    if job.fault is not None:
        os.environ["ARCHIVER_FAULT"] = job.fault
    _be_impatient()
    if not job.with_lease:
        _ignore_leases()
    try:
        records, failures = _done(job)
    except ContextError as error:
        traceback.print_exc()
        records, failures = 0, [_failure("", None, error)]
    for failure in failures:
        sys.stderr.write(f"{failure}\n")
    base.with_suffix(".json").write_text(
        json.dumps({"records": records, "failures": [asdict(failure) for failure in failures]})
    )
    sys.exit(1 if failures else 0)


def _done(job: Job) -> tuple[int, list[Failure]]:  # noqa: PLR0911 - one for each verb
    config = load_config(job.config)
    match job.verb:
        case Verb.ARCHIVE:
            return _archived(job, config)
        case Verb.RECONCILE:
            done = reconcile(config)
            return sum(result.rows for result in done), [
                _failure(result.topic, None, result.error) for result in done if result.error is not None
            ]
        case Verb.REBUILD:
            return sum(result.ranges for result in Rebuild(config).run()), []
        case Verb.REFILL:
            return 0, _refilled(job)
        case Verb.COMPACT:
            return _compacted(config)
        case Verb.EXPIRE:
            return _expired(job, config)
        case Verb.ERASE:
            return _erased(job, config)
        case Verb.ORPHANS:
            return _orphans_removed(job, config)


def _archived(job: Job, config: Config) -> tuple[int, list[Failure]]:
    with stop_on_signals() as stop, _engine(spark=job.spark) as engine:
        report = ArchiveJob(config, engine=engine, accepts=AcceptedLosses(gaps=job.accept_gaps)).run_once(stop)
    failures = [
        _failure(topic.topic, partition, error) for topic in report.topics for partition, error in topic.failures
    ]
    return report.records, failures


def _refilled(job: Job) -> list[Failure]:
    from typer.testing import CliRunner

    from archiver.cli.app import app

    done = CliRunner().invoke(app, ["refill", job.topic, "--config", str(job.config)])
    sys.stdout.write(done.output)
    if done.exit_code == 0:
        return []
    return [Failure(topic=job.topic, partition=None, kind=f"exit code {done.exit_code}", text=done.output)]


def _compacted(config: Config) -> tuple[int, list[Failure]]:
    report = Compact(config, wish=Wish(min_files=2), engine=InlineEngine).run()
    failures = [
        _failure(topic.topic, None, error)
        for topic in report.topics
        for error in (topic.error, *topic.failures.values())
        if error is not None
    ]
    return report.done.rows, failures


def _expired(job: Job, config: Config) -> tuple[int, list[Failure]]:
    limits = RetireLimits(offset=job.before, partitions=frozenset({job.partition}))
    report = Expire(
        config, (job.topic,), limits=limits, options=ExpireOptions(rows=job.rows), engine=InlineEngine()
    ).run()
    (done,) = report.topics
    errors = (done.error, *done.failures.values(), *done.purged.failures.values())
    return done.rows, [_failure(job.topic, None, error) for error in errors if error is not None]


def _erased(job: Job, config: Config) -> tuple[int, list[Failure]]:
    where = None if job.where is None else Where.parse(job.where)
    report = Erase(config, job.topic, where, engine=InlineEngine()).run()
    failures = [
        _failure(job.topic, None, error)
        for error in (*report.failures.values(), *report.purged.failures.values())
        if isinstance(error, ContextError)
    ]
    if report.unfinished:
        left = f"snapshots: {report.purged.snapshots}, files: {report.purged.left}, copies: {report.copies}"
        failures.append(Failure(topic=job.topic, partition=None, kind="unfinished", text=left))
    return report.rows, failures


def _orphans_removed(job: Job, config: Config) -> tuple[int, list[Failure]]:
    def later() -> float:
        return time.time() + job.days * _DAY_SECONDS

    report = Orphans(config, (), _Unheard(), older_than=0.0, deletes=True, clock=later).run()
    failures = [
        _failure(topic.topic, None, error)
        for topic in report.topics
        for error in (topic.error, *topic.failures.values())
        if error is not None
    ]
    return sum(len(topic.deleted) for topic in report.topics), failures


class _Unheard:
    def listed(self, topic: str, objects: int) -> None:
        pass

    def found(self, topic: str, orphans: int) -> None:
        pass

    def removed(self, topic: str, orphans: int) -> None:
        pass

    def failed(self, topic: str, path: str | None, error: ContextError) -> None:
        pass


def _engine(*, spark: bool) -> Any:
    if not spark:
        return nullcontext(InlineEngine())
    from archiver.engine.spark import SparkEngine

    return SparkEngine.start({"master": "local[2]"})


def _failure(topic: str, partition: int | None, error: ContextError) -> Failure:
    return Failure(topic=topic, partition=partition, kind=type(error).__name__, text=str(error))


def _be_impatient() -> None:
    defaults = TableCatalog.__init__.__kwdefaults__
    assert defaults is not None
    defaults["timeout_seconds"] = CATALOG_TIMEOUT_SECONDS


def _ignore_leases() -> None:
    def take(leases: Leases, topics: Sequence[TopicRow]) -> tuple[TopicRow, ...]:
        return ()

    Leases.take = take  # type: ignore[method-assign]
