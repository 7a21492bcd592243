"""Read topic states from table, registry and brokers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from archiver.commit.registry_lag import lacking_offsets, registry_behind
from archiver.commit.retention_consent import missing_consent
from archiver.commit.table_check import TableCheck, check_archive
from archiver.config import TopicConfig
from archiver.errors import CorruptBatch, NotArchived, SourceError
from archiver.kafka import losses
from archiver.kafka.broker import BrokerClient, TopicDescription
from archiver.kafka.fetch import PartitionFetcher
from archiver.kafka.losses import check_topic_id
from archiver.kafka.open_transactions import open_transactions
from archiver.topics.archived_state import known_status, with_check
from archiver.topics.catalog_pool import CatalogPool
from archiver.topics.log_bounds import LogBounds, no_leaders
from archiver.topics.partition_inspector import PartitionInspector
from archiver.topics.partitioning import check_partitioning
from archiver.topics.seen_partition import check_continuity, furthest
from archiver.topics.waiting_errors import waiting_error
from catalog.errors import NotOurTable, RegistryBehind, RolledBack
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.iceberg_format import check_writable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import PartitionOffset, TopicRow, TranslatedRange
from catalog.registry import Registry
from catalog.registry.missing_objects import first_offsets
from catalog.registry.overview import TopicOverview
from catalog.registry.retention_consents import RetentionConsent
from schema_mapping.errors import ContextError

if TYPE_CHECKING:
    from archiver.storage.formats import SegmentFormats
    from archiver.topics.archive_reader import ArchiveReader

from archiver.topics.state import PartitionStatus, TopicStatus
from archiver.topics.table_identity import identified
from archiver.wire.first_time import first_time

_NEXT_RUN: Final = (
    "The next `archiver archive` adds their ranges from journal and footers. Until then rows that are missing among"
    " them aren't counted"
)


class StatusReader:
    """Shares requests between topics of one cluster."""

    def __init__(
        self,
        *,
        brokers: BrokerClient,
        registry: Registry,
        catalogs: CatalogPool,
        formats: SegmentFormats | None = None,
    ) -> None:
        self._brokers = brokers
        self._registry = registry
        self._catalogs = catalogs
        self._formats = formats
        self._cluster_id = brokers.cluster_id()

    def topics(self, configs: Sequence[TopicConfig]) -> list[TopicStatus]:
        """A topic's error is its problem, never raised."""
        rows = {row.topic: row for row in self._registry.topics.every() if row.cluster_id == self._cluster_id}
        registered = [rows[config.name] for config in configs if config.name in rows]
        overviews = self._registry.topics.overview(registered)
        consents = {row.topic: entries for row, entries in self._consents(configs, registered).items()}
        chores = self._registry.chores.of_topics(registered) if registered else {}
        changes = self._registry.schema_changes.of_topics(registered) if registered else {}
        with suppress(SourceError):  # the first topic that asks by itself says so
            self._brokers.refresh([config.name for config in configs])
        entries: dict[str, TopicStatus] = {}
        asked: list[_Asked] = []
        for config in configs:
            row = rows.get(config.name)
            try:
                described = self._brokers.described(config.name)
            except ContextError as error:
                entries[config.name] = _unseen(config, error)
            else:
                asked.append(_Asked(config, described, row, overviews[row.id] if row else TopicOverview()))
        archives: dict[str, _Archive] = {}
        for topic, answer in self._catalogs.each(asked, self._archive, threading.Event()):
            try:
                archives[topic.config.name] = answer.result()
            except ContextError as error:
                entries[topic.config.name] = replace(known_status(topic.config, topic.overview), problem=error)
        logs = self._logs(archives)
        for name, archive in archives.items():
            try:
                entries[name] = self._look(archive, logs.get(name))
            except ContextError as error:
                entries[name] = replace(known_status(archive.config, archive.overview), problem=error)
        return [
            replace(
                entries[config.name],
                consent=missing_consent(config, consents.get(config.name, {})),
                waiting_change=waiting_error(config, changes.get(rows[config.name].id, ()))
                if config.name in rows
                else None,
                chores=chores.get(rows[config.name].id, ()) if config.name in rows else (),
            )
            for config in configs
        ]

    def _consents(
        self, configs: Sequence[TopicConfig], known: Sequence[TopicRow]
    ) -> dict[TopicRow, Mapping[str, RetentionConsent]]:
        names = {config.name for config in configs if config.expire == "auto" and config.retention_limits}
        rows = [row for row in known if row.topic in names]
        consents = self._registry.consents.of_topics(rows) if rows else {}
        return {row: consents[row.id] for row in rows}

    def _archive(self, asked: _Asked, catalog: TableCatalog) -> _Archive:
        config, described, row, overview = asked.config, asked.described, asked.row, asked.overview
        if row is None:
            self._refuse_unknown_table(config, described, catalog)
            return _Archive(config, described, None, overview, TableCheck())
        check_topic_id(config.name, archived=row.topic_id, found=described.topic_id)
        check = check_archive(row, self._registry, partial(self._load, row, catalog), formats=self._formats)
        archived = check.table.offsets if check.table else {}
        lacking = lacking_offsets(check.table, self._registry) if check.table else {}
        return _Archive(
            config,
            described,
            row,
            overview,
            check,
            behind=registry_behind(check.table, lacking, advice=_NEXT_RUN) if check.table and lacking else None,
            missing=tuple(self._registry.missing.load(row, table_offsets=archived)) if overview.has_missing else (),
            waiting=Counter(range_.partition for range_ in self._registry.files.pending(row))
            if overview.staged_ends
            else {},
        )

    def _load(self, row: TopicRow, catalog: TableCatalog) -> ArchiveTable | None:
        table = identified(row, self._registry, lambda: catalog.load(row))
        self._registry.ledger.check_table(row, table)
        return table

    def _refuse_unknown_table(self, config: TopicConfig, described: TopicDescription, catalog: TableCatalog) -> None:
        row = TopicRow(
            id=0, cluster_id=self._cluster_id, topic=config.name, topic_id=described.topic_id, table=config.table
        )
        try:
            table = catalog.load(row)
        except NotOurTable:
            if not catalog.is_blank(config.table):
                raise
            table = None  # the first run takes it over
        if table is not None:
            raise RegistryBehind(
                "the topic has an archive, and the registry knows nothing of it: its database is new, or the dsn is"
                " that of another one. Run `archiver registry rebuild`, or correct the dsn",
                topic=config.name,
                table=config.table,
                table_version=table.ledger_version,
            )

    def _logs(self, archives: Mapping[str, _Archive]) -> dict[str, _Logs]:
        selected = {
            name: sorted(
                archive.described.partitions.keys()
                - no_leaders(name, archive.described.partitions, archive.known).keys()
            )
            for name, archive in archives.items()
        }
        selected = {name: partitions for name, partitions in selected.items() if partitions}
        bounds = LogBounds.ask_at_once(selected, {name: archives[name].known for name in selected}, self._brokers)
        ends = self._brokers.list_offsets_at_once({name: selected[name] for name in bounds}, "high_watermark")
        return {name: _Logs(bounds[name], offsets) for name, offsets in ends.items()}

    def _look(self, archive: _Archive, logs: _Logs | None) -> TopicStatus:
        config, overview = archive.config, archive.overview
        fits = overview.recognition.parts if config.on_unrecognized != "ignore" else {}
        partitions = tuple(
            replace(
                _with_staged(partition, overview.staged_ends, archive.waiting),
                first_offset=archive.first_offsets.get(partition.partition),
            )
            for partition in self._partitions(archive, logs)
        )
        return replace(
            with_check(known_status(config, overview), archive.found, config, overview),
            partitions=partitions,
            doubts={part: doubt for part, fit in fits.items() if (doubt := fit.doubt) is not None},
            problem=_problem(config, archive.found, archive.behind),
        )

    def _partitions(self, archive: _Archive, logs: _Logs | None) -> list[PartitionStatus]:
        config, row, described, missing = archive.config, archive.row, archive.described, archive.missing
        topic, positions, archived = config.name, archive.known, archive.offsets
        away = no_leaders(topic, described.partitions, positions)
        led = sorted(described.partitions.keys() - away.keys())
        if logs is None:
            bounds = LogBounds.ask(topic, led, positions, self._brokers)
            logs = _Logs(bounds, self._brokers.list_offsets(topic, led, "high_watermark"))
        bounds, ends = logs.bounds, logs.ends
        inspector = PartitionInspector(
            name=topic,
            topic_id=described.topic_id,
            topic=row,
            start_from=config.start_from,
            brokers=self._brokers,
            registry=self._registry,
            archived=lambda: self._archived(archive),
            keeps=False,
        )
        inspected = inspector.inspect(bounds, described.partitions, positions, missing)
        held_back = [partition for partition in led if bounds.ends[partition] < ends[partition]]
        transactions = open_transactions(self._brokers, topic, held_back) if held_back else {}
        statuses: list[PartitionStatus] = []
        for partition in sorted(described.partitions):
            archived_to = archived[partition].next_offset if partition in archived else None
            if partition in away:
                statuses.append(PartitionStatus(partition=partition, archived_to=archived_to, problem=away[partition]))
                continue
            seen, problem = inspected[partition].seen, inspected[partition].problem
            try:
                check_continuity(topic, seen)
            except ContextError as error:
                problem = problem or error
            oldest = max(seen.next_offset if archived_to is None else archived_to, seen.log_start)
            lag, seconds = max(0, seen.last_stable - oldest), None
            if lag:
                seconds, unread = self._oldest(topic, partition, oldest)
                problem = problem or unread
            statuses.append(
                PartitionStatus(
                    partition=partition,
                    archived_to=archived_to,
                    log_start=seen.log_start,
                    last_stable=seen.last_stable,
                    high_watermark=ends[partition],
                    lag_records=lag,
                    lag_seconds=seconds,
                    open_transactions=transactions.get(partition, ()),
                    proves_epochs=seen.proves_epochs,
                    problem=problem,
                )
            )
        return statuses

    def _archived(self, archive: _Archive) -> ArchiveReader:
        from archiver.storage.formats import FORMATS
        from archiver.topics.archive_reader import ArchiveReader

        if archive.found.table is None:
            raise NotArchived("The topic is not archived yet")
        with self._catalogs.one() as catalog:
            return ArchiveReader.of(archive.found.table, self._registry, catalog, self._formats or FORMATS)

    def _oldest(self, topic: str, partition: int, offset: int) -> tuple[float | None, ContextError | None]:
        from archiver.kafka.sound_batches import is_readable

        log = PartitionFetcher(self._brokers, topic, None, partition)
        try:
            first = log.fetch(offset, max_bytes=1, committed=False).data
            is_sound = is_readable(first, offset)
        except CorruptBatch:
            first, is_sound = b"", False
        except SourceError:
            return None, None
        if is_sound:
            time_ms = first_time(first)
            return None if time_ms is None else max(0.0, time.time() - time_ms / 1000), None
        from archiver.kafka.unreadable import unreadable

        try:
            reason = unreadable(log, offset)
        except SourceError as error:
            return None, error
        return None, None if reason is None else losses.unreadable(reason, topic, partition, offset=offset)


@dataclass(frozen=True, slots=True)
class _Asked:
    config: TopicConfig
    described: TopicDescription
    row: TopicRow | None
    overview: TopicOverview


@dataclass(frozen=True, slots=True)
class _Archive:
    config: TopicConfig
    described: TopicDescription
    row: TopicRow | None
    overview: TopicOverview
    found: TableCheck
    behind: RegistryBehind | None = None
    missing: tuple[TranslatedRange, ...] = ()
    waiting: Mapping[int, int] = field(default_factory=dict)

    @property
    def first_offsets(self) -> Mapping[int, int]:
        return self.found.table.first_offsets if self.found.table else {}

    @property
    def offsets(self) -> Mapping[int, PartitionOffset]:
        return self.found.table.offsets if self.found.table else {}

    @property
    def known(self) -> dict[int, PartitionOffset]:
        first = first_offsets(self.missing, self.offsets, self.overview.staged_ends)
        return furthest({**self.offsets, **first}, self.overview.staged_ends)


@dataclass(frozen=True, slots=True)
class _Logs:
    bounds: LogBounds
    ends: Mapping[int, int]


def _unseen(config: TopicConfig, error: ContextError) -> TopicStatus:
    return TopicStatus(topic=config.name, table=config.table, problem=error)


def _problem(config: TopicConfig, found: TableCheck, behind: RegistryBehind | None) -> ContextError | None:
    if found.table is None or isinstance(found.error, RolledBack):
        return found.error
    try:
        check_writable(found.table)
        check_partitioning(config, found.table)
    except ContextError as stops:
        return stops
    return behind or found.error


def _with_staged(
    each: PartitionStatus, staged: Mapping[int, PartitionOffset], waiting: Mapping[int, int]
) -> PartitionStatus:
    reached = staged[each.partition].next_offset if each.partition in staged else each.archived_to
    return replace(each, staged_to=reached, staged_files=waiting.get(each.partition, 0))
