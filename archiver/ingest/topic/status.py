"""How far a topic is archived, and what keeps it: a look at table, registry and brokers that archives nothing."""

from __future__ import annotations

import struct
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from archiver.commit.retention_consent import missing_consent
from archiver.commit.table_check import TableCheck, check_archive
from archiver.config import TopicConfig
from archiver.errors import ConsentMissing, NotArchived, SourceError
from archiver.ingest.plan.ranges import SeenPartition, check_continuity, furthest
from archiver.ingest.topic.catalog_pool import CatalogPool
from archiver.ingest.topic.continuity import Continuity
from archiver.ingest.topic.log_bounds import LogBounds, no_leaders
from archiver.ingest.topic.owner_status import OpenErasure, open_erasures, owner_remarks
from archiver.ingest.topic.partitioning import check_partitioning
from archiver.ingest.topic.start_offsets import StartOffsets
from archiver.kafka.broker import BrokerClient, TopicDescription
from archiver.kafka.fetch import PartitionFetcher, log_reader
from archiver.kafka.losses import check_topic_id
from archiver.kafka.open_transactions import OpenTransaction, open_transactions
from catalog.errors import RegistryBehind, RolledBack
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.iceberg_format import check_writable
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import FileState, PartitionOffset, StateCount, TopicRow, TranslatedRange
from catalog.ranges.holes import AlteredRange, GoneRows, Hole
from catalog.recognition import Doubt, Recognition
from catalog.registry import Registry
from catalog.registry.missing_objects import first_offsets
from catalog.registry.overview import TopicOverview
from catalog.registry.retention_consents import RetentionConsent
from schema_mapping.errors import ContextError

if TYPE_CHECKING:
    from archiver.ingest.topic.archive_reader import ArchiveReader
    from archiver.storage.formats import SegmentFormats

_MAGIC: Final = 16
_ATTRIBUTES: Final = 21
_TIMES: Final = struct.Struct(">qq")
_TIMES_AT: Final = 27
_LOG_APPEND: Final = 0x08


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """One partition. Offsets are those that come next: `archived_to` in the table, `staged_to` with uploaded files.

    Both are None where it never was archived. `first_offset` is where it begins, if older records were retired.
    `lag_records` are offsets, so at most so many records; `lag_seconds` is the age of the oldest of them by its
    timestamp, None where nothing waits or it has none. `open_transactions` hold the last stable offset back. `problem`
    is why the job could not go on with it.
    """

    partition: int
    archived_to: int | None = None
    first_offset: int | None = None
    staged_to: int | None = None
    staged_files: int = 0
    log_start: int | None = None
    last_stable: int | None = None
    high_watermark: int | None = None
    lag_records: int = 0
    lag_seconds: float | None = None
    open_transactions: tuple[OpenTransaction, ...] = ()
    problem: ContextError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatus:
    """A topic: its partitions by number, its files by state, lost offsets that were accepted; `problem` as a whole.

    `holds` is how many legal holds are in force. `holes` are archived rows that the table doesn't have, `gone` those
    of which that is accepted, `altered` are ranges whose rows others changed or doubled. `uncompared_rows` is how many
    rows others may have changed that aren't compared yet; changes before the snapshot `unseen_before` weren't looked
    at. `recognition` says how well the schemas fitted the archived records, of which nobody counted `uncounted_rows`.
    `doubts` are the parts whose schema is hardly right, unless the topic says that it doesn't matter. `erasures` are
    the open ones, with what keeps them. `owner_remarks` say what the table's owner set against the archiver's settings.
    `consent` says that `expire = "auto"` retires nothing before somebody agrees.
    """

    topic: str
    table: str
    partitions: tuple[PartitionStatus, ...] = ()
    files: Mapping[FileState, StateCount] = field(default_factory=dict)
    lost_offsets: int = 0
    holes: tuple[Hole, ...] = ()
    altered: tuple[AlteredRange, ...] = ()
    uncompared_rows: int = 0
    unseen_before: int | None = None
    gone: GoneRows = field(default_factory=GoneRows)
    holds: int = 0
    recognition: Recognition = field(default_factory=Recognition)
    uncounted_rows: int = 0
    doubts: Mapping[str, Doubt] = field(default_factory=dict)
    erasures: tuple[OpenErasure, ...] = ()
    owner_remarks: tuple[str, ...] = ()
    problem: ContextError | None = None
    consent: ConsentMissing | None = None

    @property
    def is_seen(self) -> bool:
        """Whether the topic could be looked at."""
        return bool(self.partitions)

    @property
    def lag_records(self) -> int:
        """Offsets that wait."""
        return sum(each.lag_records for each in self.partitions)

    @property
    def lag_seconds(self) -> float | None:
        """The age of the oldest record that waits."""
        return max((each.lag_seconds for each in self.partitions if each.lag_seconds is not None), default=None)

    @property
    def problems(self) -> tuple[ContextError, ...]:
        """Everything that keeps the job from going on, or from retiring."""
        whole = tuple(error for error in (self.problem, self.consent) if error)
        return whole + tuple(each.problem for each in self.partitions if each.problem)


class StatusReader:
    """Looks at topics of one cluster. What can be asked for all topics together is asked so."""

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
        """The topics as they are now; what keeps from looking at one is its problem."""
        rows = {row.topic: row for row in self._registry.topics.every() if row.cluster_id == self._cluster_id}
        known = [rows[config.name] for config in configs if config.name in rows]
        overviews = self._registry.topics.overview(known)
        consents = {row.topic: found for row, found in self._consents(configs, known).items()}
        with suppress(SourceError):  # the first topic that asks by itself says so
            self._brokers.refresh([config.name for config in configs])
        found: dict[str, TopicStatus] = {}
        asked: list[_Asked] = []
        for config in configs:
            row = rows.get(config.name)
            try:
                described = self._brokers.described(config.name)
            except ContextError as error:
                found[config.name] = _unseen(config, error)
            else:
                asked.append(_Asked(config, described, row, overviews[row.id] if row else TopicOverview()))
        archives: dict[str, _Archive] = {}
        for one, answer in self._catalogs.each(asked, self._archive, threading.Event()):
            try:
                archives[one.config.name] = answer.result()
            except ContextError as error:
                found[one.config.name] = _unseen(one.config, error)
        logs = self._logs(archives)
        for name, archive in archives.items():
            try:
                found[name] = self._look(archive, logs.get(name))
            except ContextError as error:
                found[name] = _unseen(archive.config, error)
        return [
            replace(found[config.name], consent=missing_consent(config, consents.get(config.name, {})))
            for config in configs
        ]

    def _consents(
        self, configs: Sequence[TopicConfig], known: Sequence[TopicRow]
    ) -> dict[TopicRow, Mapping[str, RetentionConsent]]:
        """The consents to limits of topics that are retired automatically."""
        names = {config.name for config in configs if config.expire == "auto" and config.retention_limits}
        rows = [row for row in known if row.topic in names]
        found = self._registry.consents.of_topics(rows) if rows else {}
        return {row: found[row.id] for row in rows}

    def _archive(self, asked: _Asked, catalog: TableCatalog) -> _Archive:
        """What registry and table say of a topic. Called in threads of their own."""
        config, described, row, overview = asked.config, asked.described, asked.row, asked.overview
        if row is None:
            self._refuse_unknown_table(config, described, catalog)
            return _Archive(config, described, None, overview, TableCheck())
        check_topic_id(config.name, archived=row.topic_id, found=described.topic_id)
        found = check_archive(row, self._registry, partial(self._load, row, catalog), formats=self._formats)
        archived = found.table.offsets if found.table else {}
        return _Archive(
            config,
            described,
            row,
            overview,
            found,
            missing=tuple(self._registry.missing.load(row, table_offsets=archived)) if overview.has_missing else (),
            waiting=Counter(one.partition for one in self._registry.files.pending(row)) if overview.staged_ends else {},
        )

    def _load(self, row: TopicRow, catalog: TableCatalog) -> ArchiveTable | None:
        """The topic's table. RegistryBehind where it is not the one that the registry knows, or is gone."""
        table = catalog.load(row)
        self._registry.ledger.check_table(row, table)
        return table

    def _refuse_unknown_table(self, config: TopicConfig, described: TopicDescription, catalog: TableCatalog) -> None:
        """RegistryBehind where the registry doesn't know the topic, and there is an archive of it."""
        row = TopicRow(
            id=0, cluster_id=self._cluster_id, topic=config.name, topic_id=described.topic_id, table=config.table
        )
        table = catalog.load(row)
        if table is not None:
            raise RegistryBehind(
                "the topic has an archive, and the registry knows nothing of it: its database is new, or the dsn is"
                " that of another one. Run `archiver registry rebuild`, or correct the dsn",
                topic=config.name,
                table=config.table,
                table_version=table.ledger_version,
            )

    def _logs(self, archives: Mapping[str, _Archive]) -> dict[str, _Logs]:
        """Where the logs begin and end, asked after the archives. Topics that can't be asked so are left out."""
        wanted = {
            name: sorted(one.described.partitions.keys() - no_leaders(name, one.described.partitions, one.known).keys())
            for name, one in archives.items()
        }
        wanted = {name: partitions for name, partitions in wanted.items() if partitions}
        bounds = LogBounds.ask_at_once(wanted, {name: archives[name].known for name in wanted}, self._brokers)
        ends = self._brokers.list_offsets_at_once({name: wanted[name] for name in bounds}, "high_watermark")
        return {name: _Logs(bounds[name], found) for name, found in ends.items()}

    def _look(self, archive: _Archive, logs: _Logs | None) -> TopicStatus:
        config, overview = archive.config, archive.overview
        fits = overview.recognition.parts if config.on_unrecognized != "ignore" else {}
        return TopicStatus(
            topic=config.name,
            table=config.table,
            partitions=tuple(
                replace(
                    _with_staged(each, overview.staged_ends, archive.waiting),
                    first_offset=archive.first_offsets.get(each.partition),
                )
                for each in self._partitions(archive, logs)
            ),
            files=overview.counts,
            lost_offsets=overview.lost_offsets,
            holes=archive.found.holes,
            altered=archive.found.altered,
            uncompared_rows=archive.found.uncompared_rows,
            unseen_before=archive.found.unseen_before,
            gone=overview.gone,
            holds=overview.holds + config.hold,
            recognition=overview.recognition,
            uncounted_rows=overview.uncounted_rows,
            doubts={part: doubt for part, fit in fits.items() if (doubt := fit.doubt) is not None},
            erasures=open_erasures(overview.erasures, archive.found.table),
            owner_remarks=owner_remarks(archive.found.table, config.snapshot_retention),
            problem=_problem(config, archive.found),
        )

    def _partitions(self, archive: _Archive, logs: _Logs | None) -> list[PartitionStatus]:
        config, row, described, missing = archive.config, archive.row, archive.described, archive.missing
        topic, known, archived = config.name, archive.known, archive.offsets
        away = no_leaders(topic, described.partitions, known)
        led = sorted(described.partitions.keys() - away.keys())
        if logs is None:
            bounds = LogBounds.ask(topic, led, known, self._brokers)
            logs = _Logs(bounds, self._brokers.list_offsets(topic, led, "high_watermark"))
        bounds, ends = logs.bounds, logs.ends
        starts = StartOffsets(
            topic=row,
            name=topic,
            start_from=config.start_from,
            brokers=self._brokers,
            remembered=self._registry.starts,
            keeps=False,
        ).of(bounds.new(known, described.partitions), is_first=not known)
        continuity = Continuity(
            topic,
            epochs=self._brokers,
            log=log_reader(self._brokers, topic, described.topic_id),
            archived=lambda: self._archived(archive),
            starts=lambda: self._registry.starts.decide(row) if row else {},
            proven={},
        )
        held_back = [each for each in led if bounds.ends[each] < ends[each]]
        transactions = open_transactions(self._brokers, topic, held_back) if held_back else {}
        found: list[PartitionStatus] = []
        for partition in sorted(described.partitions):
            place = archived[partition].next_offset if partition in archived else None
            if partition in away:
                found.append(PartitionStatus(partition=partition, archived_to=place, problem=away[partition]))
                continue
            seen, problem = bounds.seen(partition, known.get(partition), starts.get(partition), missing=missing), None
            try:
                check_continuity(topic, continuity.judged(seen, bounds.epoch_ends.get(partition)))
            except ContextError as error:
                problem = error
            lag, seconds = self._lag(topic, seen, place)
            found.append(
                PartitionStatus(
                    partition=partition,
                    archived_to=place,
                    log_start=seen.log_start,
                    last_stable=seen.last_stable,
                    high_watermark=ends[partition],
                    lag_records=lag,
                    lag_seconds=seconds,
                    open_transactions=transactions.get(partition, ()),
                    problem=problem,
                )
            )
        return found

    def _archived(self, archive: _Archive) -> ArchiveReader:
        from archiver.ingest.topic.archive_reader import ArchiveReader
        from archiver.storage.formats import FORMATS

        if archive.found.table is None:
            raise NotArchived("The topic is not archived yet")
        with self._catalogs.one() as catalog:
            return ArchiveReader.of(archive.found.table, self._registry, catalog, self._formats or FORMATS)

    def _lag(self, topic: str, seen: SeenPartition, archived_to: int | None) -> tuple[int, float | None]:
        """How many offsets wait, and the age of the oldest."""
        oldest = max(seen.next_offset if archived_to is None else archived_to, seen.log_start)
        lag = max(0, seen.last_stable - oldest)
        return lag, self._age(topic, seen.partition, oldest) if lag else None

    def _age(self, topic: str, partition: int, offset: int) -> float | None:
        """Seconds since the time of the first batch from `offset` on, None where the brokers don't give one."""
        try:
            first = PartitionFetcher(self._brokers, topic, None, partition).fetch(offset, max_bytes=1, committed=False)
        except SourceError:
            return None
        time_ms = batch_time(first.data)
        return None if time_ms is None else max(0.0, time.time() - time_ms / 1000)


@dataclass(frozen=True, slots=True)
class _Asked:
    config: TopicConfig
    described: TopicDescription
    row: TopicRow | None
    overview: TopicOverview


@dataclass(frozen=True, slots=True)
class _Archive:
    """What brokers, registry and table say of a topic, before its logs are asked."""

    config: TopicConfig
    described: TopicDescription
    row: TopicRow | None
    overview: TopicOverview
    found: TableCheck
    missing: tuple[TranslatedRange, ...] = ()
    waiting: Mapping[int, int] = field(default_factory=dict)

    @property
    def first_offsets(self) -> Mapping[int, int]:
        """Where partitions begin of which older records were retired."""
        return self.found.table.first_offsets if self.found.table else {}

    @property
    def offsets(self) -> Mapping[int, PartitionOffset]:
        """How far partitions are in the table."""
        return self.found.table.offsets if self.found.table else {}

    @property
    def known(self) -> dict[int, PartitionOffset]:
        """How far partitions are archived or staged."""
        first = first_offsets(self.missing, self.offsets, self.overview.staged_ends)
        return furthest({**self.offsets, **first}, self.overview.staged_ends)


@dataclass(frozen=True, slots=True)
class _Logs:
    bounds: LogBounds
    ends: Mapping[int, int]


def _unseen(config: TopicConfig, error: ContextError) -> TopicStatus:
    return TopicStatus(topic=config.name, table=config.table, problem=error)


def batch_time(data: bytes) -> int | None:
    """The time (ms) of a batch's first record as a consumer sees it, by the header; None where there is none."""
    if len(data) < _TIMES_AT + _TIMES.size or data[_MAGIC] != 2:  # noqa: PLR2004 - record batches, not messages
        return None
    (attributes,) = struct.unpack_from(">h", data, _ATTRIBUTES)
    first, last = _TIMES.unpack_from(data, _TIMES_AT)
    found = last if attributes & _LOG_APPEND else first
    return None if found < 0 else int(found)


def _problem(config: TopicConfig, found: TableCheck) -> ContextError | None:
    """What stops the topic goes before rows that others removed, which are told and don't."""
    if found.table is None or isinstance(found.error, RolledBack):
        return found.error
    try:
        check_writable(found.table)
        check_partitioning(config, found.table)
    except ContextError as stops:
        return stops
    return found.error


def _with_staged(
    each: PartitionStatus, staged: Mapping[int, PartitionOffset], waiting: Mapping[int, int]
) -> PartitionStatus:
    reached = staged[each.partition].next_offset if each.partition in staged else each.archived_to
    return replace(each, staged_to=reached, staged_files=waiting.get(each.partition, 0))
