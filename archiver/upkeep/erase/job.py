"""`archiver erase`: rewrite files, expire snapshots, delete every object that had the records.

`--finish` continues what couldn't be deleted yet. Safe beside an archiver, and safe to repeat.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyiceberg.table.snapshots import Snapshot

from archiver.archive.plan_cache import PlanCache
from archiver.archive.table_files import ManifestReader
from archiver.config import Config
from archiver.engine.choice import HERE_BYTES, EngineChoice
from archiver.engine.runner import Engine
from archiver.errors import ConfigError
from archiver.observer import all_of, ignore
from archiver.records.table_columns import table_columns
from archiver.records.where import Where
from archiver.storage.formats import FORMATS
from archiver.storage.journal import Journal
from archiver.upkeep.archived_topic import find_archived
from archiver.upkeep.consent import GIVEN, Consent
from archiver.upkeep.erase.consent import ErasureConsent
from archiver.upkeep.erase.copies import Spans
from archiver.upkeep.erase.finishing import finish
from archiver.upkeep.erase.offset_list import OffsetList
from archiver.upkeep.erase.removing import erase_rows
from archiver.upkeep.erase.report import EraseFinished, EraseObserver, EraseReport, OwnedSnapshots, RecordsFound
from archiver.upkeep.erase.spans import Span
from archiver.upkeep.erase.topic import TopicErasure, await_logs, refuse_unerasable
from archiver.upkeep.removal.conditions import AtOffsets, Matching
from archiver.upkeep.removal.purge import ExpiresOwned, confirmed_time, never_owned
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import new_id
from catalog.registry import Registry
from catalog.registry.erased_offsets import CONDITION


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseOptions:
    """`grace` is in seconds, for readers of older snapshots. `agreed` spans have consent.

    `expires_owned` decides about snapshots with erased records that the owner's `history.expire.*` keep: by default
    they stay, and so does the erasure.
    """

    grace: float = 0.0
    dry_run: bool = False
    expires_owned: ExpiresOwned = never_owned
    agreed: tuple[Span, ...] | None = None
    clock: Callable[[], float] | None = None
    """The time in seconds since 1970, by default this machine's, which Postgres has to confirm."""


class Erase:
    """Erase archived or staged records, or without a condition continue unfinished erasures."""

    def __init__(
        self,
        config: Config,
        topic: str,
        where: Where | OffsetList | None,
        observer: EraseObserver = ignore,
        *,
        options: EraseOptions | None = None,
        engine: Engine | None = None,
        consent: Consent = GIVEN,
    ) -> None:
        self._config = config
        self._name = topic
        self._where = where
        self._observer = all_of(observer)
        self._options = options or EraseOptions()
        self._engine = engine
        self._decided: dict[frozenset[int], bool] = {}
        self._consent = ErasureConsent(config=config, topic=topic, consent=consent, agreed=self._options.agreed)

    def run(self) -> EraseReport:
        """Files that fail are in the report.

        Raises before any change RecordsHeld, FilesShared if the owner forbids deleting files, ConfigError if this clock
        differs from Postgres', and LogNotWritten if matching rows may wait in a write-ahead log.
        """
        if isinstance(self._where, Where) and self._where.metadata_names:
            raise ConfigError(
                "an erasure takes no condition on metadata, as it erases the metadata first, and a run that is"
                " repeated would find nothing. Write the records to a file: `archiver find TOPIC --meta NAME=VALUE"
                " --format jsonl > FILE`, and erase them by `--offsets-file FILE`",
                topic=self._name,
            )
        started = time.monotonic()
        with ExitStack() as closing:
            registry = closing.enter_context(Registry(self._config.registry.dsn))
            catalog = closing.enter_context(TableCatalog(self._config.catalog))
            engines = closing.enter_context(EngineChoice(self._config.spark, self._engine, here_bytes=HERE_BYTES))
            if self._where is not None and not self._options.dry_run:
                await_logs(self._config, (self._name,), registry)
            archived = find_archived(
                self._config, self._name, registry=registry, catalog=catalog, dry_run=self._options.dry_run
            )
            refuse_unerasable(archived.table)
            now = self._options.clock() if self._options.clock else confirmed_time(registry)
            report = EraseReport(topic=self._name, table=archived.topic.table, dry_run=self._options.dry_run)
            work = TopicErasure(
                config=self._config,
                archived=archived,
                registry=registry,
                catalog=catalog,
                manifests=ManifestReader(cache=PlanCache.below(self._config.archive.spool)),
                journal=Journal.of(self._config).of_table(archived.table),
                engine=engines.of_bytes,
                observer=self._observer,
                formats=FORMATS,
            )
            searched: Spans | None = None
            if self._where is not None:
                searched = self._erase(work, self._where, report)
            elif not self._options.dry_run:
                work.settle({})
            if not self._options.dry_run:
                finish(
                    work,
                    report,
                    grace=self._options.grace,
                    now=now,
                    searched=searched,
                    expires_owned=self._expires_owned,
                )
        report.seconds = time.monotonic() - started
        self._observer(EraseFinished(report=report))
        return report

    def _expires_owned(self, snapshots: Sequence[Snapshot], settings: Mapping[str, str]) -> bool:
        ids = frozenset(snapshot.snapshot_id for snapshot in snapshots)
        if ids not in self._decided:  # decided once, even if other engines commit
            self._observer(OwnedSnapshots(snapshots=tuple(snapshots), settings=settings))
            self._decided[ids] = self._options.expires_owned(snapshots, settings)
        return self._decided[ids]

    def _erase(self, work: TopicErasure, where: Where | OffsetList, report: EraseReport) -> Spans:
        condition = self._condition(work, where)
        salt = secrets.token_hex(16)
        digest = hmac.new(bytes.fromhex(salt), where.text.encode(), hashlib.sha256).hexdigest()
        erasure = new_id()
        value = {"id": erasure, CONDITION: digest, "grace_seconds": int(self._options.grace)}
        if self._consent.asks and self._consent.agreed is None and not self._options.dry_run:
            self._ask(work, condition, report)
        is_kept = erase_rows(
            work,
            condition,
            report,
            erasure=erasure,
            value=value,
            dry_run=self._options.dry_run,
            consent=self._consent,
        )
        if report.rows or report.commits or is_kept:
            report.erasure, report.condition_hash, report.salt = erasure, digest, salt
        return condition.spans if isinstance(condition, AtOffsets) else {}

    def _condition(self, work: TopicErasure, where: Where | OffsetList) -> Matching | AtOffsets:
        columns = {}
        if isinstance(where, Where):
            columns = table_columns(where, work.table.schema, work.registry.ledger.load(work.topic))
        ends = {
            partition: reached.next_offset
            for partition, reached in work.registry.files.accepted_ends(work.topic).items()
        }
        if isinstance(where, OffsetList):
            _check_archived(where, ends, self._name)
        if not self._options.dry_run:
            work.settle(ends)
        if isinstance(where, OffsetList):
            return AtOffsets(where.within(ends), is_search=True)
        return Matching(
            where, {partition: end for partition, end in ends.items() if where.bounds(partition) is not None}, columns
        )

    def _ask(self, work: TopicErasure, condition: Matching | AtOffsets, report: EraseReport) -> None:
        preview = EraseReport(topic=report.topic, table=report.table, dry_run=True)
        erase_rows(work, condition, preview, erasure="", value={}, dry_run=True)
        self._observer(RecordsFound(rows=preview.rows))
        self._consent.check(preview, files=preview.files)


def _check_archived(offsets: OffsetList, ends: Mapping[int, int], topic: str) -> None:
    """Raise ConfigError for offsets that aren't archived."""
    for partition, spans in offsets.spans.items():
        if spans[-1][1] > ends.get(partition, 0):
            raise ConfigError(
                "the list names offsets that are not archived: is it that of another topic?",
                topic=topic,
                partition=partition,
                offset=spans[-1][1] - 1,
                archived_to=ends.get(partition, 0),
            )
