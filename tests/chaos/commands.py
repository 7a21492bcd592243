"""The archiver's commands on one topic."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archiver.config import Config, load_config
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.records.where import Where
from archiver.storage.journal import Journal, TableJournal
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.compact.report import TopicCompaction
from archiver.upkeep.erase.job import Erase, EraseOptions
from archiver.upkeep.erase.report import EraseReport
from archiver.upkeep.orphans.job import Orphans
from archiver.upkeep.orphans.report import TopicOrphans
from archiver.upkeep.rebuild.job import Rebuild, RebuiltTopic
from archiver.upkeep.reconcile import ReconciledTopic, reconcile
from archiver.upkeep.refill.job import RefillJob
from archiver.upkeep.refill.report import RefillReport
from archiver.upkeep.repartition import Repartitioned, repartition
from archiver.upkeep.reprocess.job import Reprocess
from archiver.upkeep.reprocess.report import ReprocessReport
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.job import Expire, ExpireOptions
from archiver.upkeep.retire.report import TopicRetired
from archiver.upkeep.verify.job import Verify, VerifyOptions
from archiver.upkeep.verify.report import VerifiedTopic
from catalog.iceberg.table_catalog import TableCatalog
from tests.support.archive.job_runs import without_registry
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

LATER = 9 * 86_400.0
"""Seconds after which every upload of a job that died is old."""


def later() -> float:
    return time.time() + LATER


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """`spark`: with the configured engine, not threads. `fault` is ARCHIVER_FAULT of a process."""

    path: Path
    topic: str
    spark: bool = False
    fault: str | None = None

    @property
    def config(self) -> Config:
        return load_config(self.path)

    @property
    def _engine(self) -> InlineEngine | None:
        return None if self.spark else InlineEngine()

    def archive(self) -> JobReport:
        return ArchiveJob(self.config, [self.topic], engine=self._engine).run_once()

    def compact(self, *, min_files: int = 2, repartition: bool = False) -> TopicCompaction:
        wish = Wish(min_files=min_files, repartition=repartition)
        (done,) = (
            Compact(self.config, (self.topic,), wish=wish, engine=None if self.spark else InlineEngine).run().topics
        )
        return done

    def repartition(self) -> Repartitioned:
        return repartition(self.config, self.topic)

    def expire(self, limits: RetireLimits | None, *, rows: bool = False) -> TopicRetired:
        job = Expire(self.config, (self.topic,), limits=limits, options=ExpireOptions(rows=rows), engine=self._engine)
        (done,) = job.run().topics
        return done

    def erase(self, where: str | None) -> EraseReport:
        condition = None if where is None else Where.parse(where)
        return Erase(self.config, self.topic, condition, engine=self._engine, options=EraseOptions(clock=later)).run()

    def refill(self, **accepts: bool) -> RefillReport:
        return RefillJob(self.config, self.topic, engine=self._engine, **accepts).run()

    def reprocess(self) -> ReprocessReport:
        return Reprocess(self.config, self.topic, engine=self._engine).run()

    def orphans(self) -> TopicOrphans:
        job = Orphans(self.config, [self.topic], deletes=True, older_than=86_400.0, clock=later)
        (done,) = job.run().topics
        return done

    def reconcile(self) -> ReconciledTopic:
        (done,) = reconcile(self.config, [self.topic])
        return done

    def sum_up(self) -> Any:
        with TableCatalog(self.config.catalog) as catalog:
            table = catalog.adopt(self.config.topic(self.topic).table, topic=self.topic)
        assert table is not None
        journal: TableJournal = Journal.of(self.config).of_table(table)
        return journal.sum_up(settled_seconds=-60.0)

    def verify(self, *, asks_registry: bool = True) -> VerifiedTopic:
        """Verify in threads, also with `spark`: the judge needs the report."""
        job = Verify(
            self.config,
            [self.topic],
            engine=InlineEngine(),
            options=VerifyOptions(asks_registry=asks_registry, resumes=False),
        )
        report = job.run()
        for failed in report.failed:
            raise failed.error
        return report.topics[0]

    def rebuild(self) -> RebuiltTopic:
        (done,) = Rebuild(self.config, [self.topic]).run()
        return done

    def without_registry(self, stack: Stack, *, with_journal: bool) -> Commands:
        return replace(self, path=without_registry(stack, self.path, with_journal=with_journal))
