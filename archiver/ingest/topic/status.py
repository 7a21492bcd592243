"""How far a topic is archived, and what keeps it: a look at table, registry and brokers that archives nothing."""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from archiver.commit.table_check import TableCheck, check_archive
from archiver.config import TopicConfig
from archiver.errors import NotArchived, SourceError
from archiver.ingest.plan.ranges import SeenPartition, check_continuity, furthest
from archiver.ingest.topic.archive_reader import ArchiveReader
from archiver.ingest.topic.continuity import Continuity
from archiver.ingest.topic.log_bounds import LogBounds, no_leaders
from archiver.ingest.topic.opening import check_partitioning
from archiver.ingest.topic.start_offsets import StartOffsets
from archiver.kafka.broker import BrokerClient, TopicDescription
from archiver.kafka.fetch import PartitionFetcher, log_reader
from archiver.kafka.losses import check_topic_id
from archiver.kafka.open_transactions import OpenTransaction, open_transactions
from archiver.storage.formats import FORMATS, SegmentFormats
from catalog.errors import RolledBack
from catalog.iceberg.table_catalog import TableCatalog
from catalog.model import FileState, PartitionOffset, StateCount, TopicRow, TranslatedRange
from catalog.ranges.holes import GoneRows, Hole
from catalog.registry import Registry
from catalog.registry.missing_objects import first_offsets
from schema_mapping.errors import ContextError

_MAGIC: Final = 16
_ATTRIBUTES: Final = 21
_TIMES: Final = struct.Struct(">qq")
_TIMES_AT: Final = 27
_LOG_APPEND: Final = 0x08


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """One partition. Offsets are those that come next: `archived_to` in the table, `staged_to` with uploaded files.

    Both are None where it never was archived. `lag_records` are offsets, so at most so many records; `lag_seconds` is
    the age of the oldest of them by its timestamp, None where nothing waits or it has none. `open_transactions` hold
    the last stable offset back. `problem` is why the job could not go on with it.
    """

    partition: int
    archived_to: int | None = None
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

    `holes` are archived rows that the table doesn't have, `gone` those of which that is accepted.
    """

    topic: str
    table: str
    partitions: tuple[PartitionStatus, ...] = ()
    files: Mapping[FileState, StateCount] = field(default_factory=dict)
    lost_offsets: int = 0
    holes: tuple[Hole, ...] = ()
    gone: GoneRows = field(default_factory=GoneRows)
    problem: ContextError | None = None

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
        """Everything that keeps the job from going on."""
        whole = (self.problem,) if self.problem else ()
        return whole + tuple(each.problem for each in self.partitions if each.problem)


class StatusReader:
    """Looks at topics of one cluster."""

    def __init__(
        self, *, brokers: BrokerClient, registry: Registry, catalog: TableCatalog, formats: SegmentFormats = FORMATS
    ) -> None:
        self._brokers = brokers
        self._registry = registry
        self._catalog = catalog
        self._formats = formats
        self._cluster_id = brokers.cluster_id()

    def topic(self, config: TopicConfig) -> TopicStatus:
        """The topic as it is now; what keeps from looking is its problem."""
        try:
            return self._look(config)
        except ContextError as error:
            return TopicStatus(topic=config.name, table=config.table, problem=error)

    def _look(self, config: TopicConfig) -> TopicStatus:
        row = self._registry.topics.find(cluster_id=self._cluster_id, topic=config.name)
        staged = self._registry.files.staged_ends(row) if row else {}
        waiting = Counter(one.partition for one in self._registry.files.pending(row)) if row else Counter[int]()
        found = self._check_archive(row) if row else TableCheck()
        archived = found.table.offsets if found.table else {}
        missing = self._registry.missing.load(row, table_offsets=archived) if row else ()
        described = self._brokers.describe([config.name])[config.name]
        if row is not None:
            check_topic_id(config.name, archived=row.topic_id, found=described.topic_id)
        seen = self._partitions(config, row, described, archived=archived, staged=staged, missing=missing)
        return TopicStatus(
            topic=config.name,
            table=config.table,
            partitions=tuple(_with_staged(each, staged, waiting) for each in seen),
            files=self._registry.files.counts(row) if row else {},
            lost_offsets=self._registry.files.lost_offsets(row) if row else 0,
            holes=found.holes,
            gone=self._registry.rows.gone(row) if row else GoneRows(),
            problem=_problem(config, found),
        )

    def _partitions(
        self,
        config: TopicConfig,
        row: TopicRow | None,
        described: TopicDescription,
        *,
        archived: Mapping[int, PartitionOffset],
        staged: Mapping[int, PartitionOffset],
        missing: Sequence[TranslatedRange],
    ) -> list[PartitionStatus]:
        topic = config.name
        known = furthest({**archived, **first_offsets(missing, archived, staged)}, staged)
        away = no_leaders(topic, described.partitions, known)
        led = sorted(described.partitions.keys() - away.keys())
        bounds = LogBounds.ask(topic, led, known, self._brokers)
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
            archived=lambda: self._archived(row),
            starts=lambda: self._registry.starts.decide(row) if row else {},
            proven={},
        )
        ends = self._brokers.list_offsets(topic, led, "high_watermark")
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

    def _check_archive(self, row: TopicRow) -> TableCheck:
        return check_archive(row, self._registry, partial(self._catalog.load, row), formats=self._formats)

    def _archived(self, row: TopicRow | None) -> ArchiveReader:
        if row is None:
            raise NotArchived("The topic is not archived yet")
        return ArchiveReader.of(row, self._registry, self._catalog, self._formats)

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
        check_partitioning(config, found.table)
    except ContextError as stops:
        return stops
    return found.error


def _with_staged(
    each: PartitionStatus, staged: Mapping[int, PartitionOffset], waiting: Mapping[int, int]
) -> PartitionStatus:
    reached = staged[each.partition].next_offset if each.partition in staged else each.archived_to
    return replace(each, staged_to=reached, staged_files=waiting.get(each.partition, 0))
