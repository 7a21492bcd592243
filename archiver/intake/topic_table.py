"""The files and table of a topic that clients fill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from archiver.chores.runner import ChoreRunner, ChoreTopic
from archiver.chores.tidying import TIDYING
from archiver.commit.commit_staged import StagedTopic, commit_pending
from archiver.commit.lacking_ranges import add_lacking_ranges
from archiver.config import Config, TopicConfig
from archiver.errors import IntakeEnded, TopicBusy
from archiver.files.range_files import FileTarget
from archiver.files.range_writer import RangeWriter
from archiver.files.upload import Uploader
from archiver.intake.batches import LoggedRecords, RowsVersion, check_version
from archiver.intake.row_encoding import RowEncoding, check_key_column
from archiver.intake.state import IntakeState, covered_state
from archiver.kafka.leaders import TopicDescription
from archiver.observer import ignore
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.storage.formats import FORMATS
from archiver.storage.spool import TaskSpool
from archiver.topics.file_target import file_target
from archiver.topics.filled_state import FLIGHT_CLUSTER
from archiver.topics.inspection import archived_offsets
from archiver.topics.leases import TopicLeases
from archiver.topics.lost_ranges import lost_ranges
from archiver.topics.opening import OpenedTopic, RegisteredTopic, TopicServers, for_records, open_topic
from archiver.topics.seen_partition import furthest
from catalog.errors import PartitionAhead
from catalog.iceberg.expiry import SnapshotRetention
from catalog.model import PartitionOffset, TopicRow, TranslatedRange
from catalog.offset_range import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenedTurn:
    topic: OpenedTopic
    fence: Mapping[int, PartitionOffset]


@dataclass(slots=True)
class _Owner:
    wal_id: str
    epoch: int
    states: list[Mapping[str, Any]]


class TopicTable:
    """Implements `IntakeArchive`. For one thread."""

    def __init__(self, config: Config, topic: TopicConfig, servers: TopicServers) -> None:
        self._config = config
        self._topic = topic
        self._servers = servers
        self._chores = ChoreRunner((TIDYING,))
        self._opened: _OpenedTurn | None = None
        self._owner: _Owner | None = None
        self.encoding: RowEncoding | None = None
        """Of the rows that are taken in from now on."""

    def own(self, *, wal_id: str, epoch: int, states: Sequence[Mapping[str, Any]]) -> None:
        """`states` are kept ones, oldest first."""
        self._owner = _Owner(wal_id, epoch, list(states))

    def register(self) -> tuple[TopicRow, Mapping[int, int]]:
        """Register the topic and make its table, if necessary; return the next offsets, too.

        Other jobs may have the topic's lease. Raises ConfigError if `key` names no column for keys.
        """
        opened = self._open()
        check_key_column(self._topic, opened.row)
        self._publish(opened)
        staged = self._servers.registry.files.accepted_ends(opened.topic)
        ends = furthest(opened.table.offsets, staged)
        return opened.topic, {partition: end.next_offset for partition, end in ends.items()}

    @contextmanager
    def leased(self, row: TopicRow) -> Iterator[None]:
        """Raises TopicBusy."""
        with self._servers.registry.leases() as leases:
            if TopicLeases(leases).take((row,)):
                raise TopicBusy("another job works on the topic; its rows wait in the log", topic=self._topic.name)
            yield

    def begin(self) -> Mapping[int, int]:
        registry, catalog = self._servers.registry, self._servers.catalog
        opened = self._open()
        if not opened.table.is_recalled:
            add_lacking_ranges(opened.table, registry, opened.journal, FORMATS)
        self._commit(opened.staged)
        archived = archived_offsets(opened, registry=registry, catalog=catalog)
        opened = for_records(opened, registry)
        self._publish(opened)
        partitions = range(self._topic.partitions or 0)
        unknown = {partition: 0 for partition in partitions if partition not in archived.known}
        opened.journal.keep_starts(dict.fromkeys(partitions, 0))
        fence = archived.table_offsets | {partition: PartitionOffset(next_offset=0) for partition in unknown}
        self._opened = _OpenedTurn(topic=opened, fence=fence)
        return unknown | {partition: end.next_offset for partition, end in archived.known.items()}

    def write(self, records: Iterable[LoggedRecords]) -> Sequence[TranslatedRange]:
        assert self._opened is not None
        of_records = self._target(None)
        targets: dict[RowsVersion | None, FileTarget] = {None: of_records}
        room = self._config.archive.spool_size // (self._topic.partitions or 1)
        writers: dict[int, tuple[FileTarget, RangeWriter]] = {}
        with ExitStack() as closing:
            spool = closing.enter_context(TaskSpool(self._config.archive.spool))
            uploader = closing.enter_context(Uploader(of_records.objects, spool))
            try:
                for partition, group, version in records:
                    if version not in targets:
                        targets[version] = self._target(version, of_records)
                    target = targets[version]
                    former, writer = writers.get(partition, (None, None))
                    if writer is None or target is not former:
                        if writer is not None:
                            writer.end()
                        writer = RangeWriter(target, spool, uploader, partition=partition, spool_bytes=room)
                        writers[partition] = target, writer
                    writer.write(group)
                for _, writer in writers.values():
                    writer.end()
                uploader.wait()
            finally:
                for _, writer in writers.values():
                    writer.abort()
        return tuple(uploader.uploaded)

    def _publish(self, opened: OpenedTopic) -> None:
        encoding = RowEncoding.of(self._topic, opened.row)
        if encoding != self.encoding:
            self.encoding = encoding

    def _target(self, version: RowsVersion | None, of_records: FileTarget | None = None) -> FileTarget:
        """Values that were sent as columns are read with the version that encoded them: plain Avro depends on it.

        If records are read the same way, both share `of_records`, and so files.
        """
        assert self._opened is not None
        opened = self._opened.topic
        if version is not None:
            row = opened.row
            if version.number != row.schema_version:
                row = self._servers.registry.ledger.row_mapping(opened.topic, version.number)
            check_version(version, row, topic=self._topic.name)
            if of_records is not None and opened.for_rows(row) == opened:
                return of_records
            opened = opened.for_rows(row)
        memory = self._config.archive.partition_memory
        return file_target(opened, self._topic, format_=FORMATS.written, pending_bytes=memory)

    def lost(self, offsets: Sequence[OffsetRange]) -> tuple[TranslatedRange, ...]:
        """Accepted losses, which advance the next offset."""
        assert self._opened is not None
        version = self._opened.topic.row.schema_version
        return lost_ranges(self._topic.name, offsets, known={}, schema_version=version)

    def keep(self, state: IntakeState, ends: Mapping[int, int]) -> None:
        """Raises IntakeEnded if another process has the log."""
        assert self._opened is not None
        owner = self._owner
        if owner is None or (owner.states and owner.states[-1].get("sequence") == state.sequence):
            return
        states = [covered_state(owner.states, ends), state.to_json(answers=False)]
        topic = self._opened.topic.topic
        if not self._servers.registry.intake.keep_states(topic, wal_id=owner.wal_id, epoch=owner.epoch, states=states):
            raise IntakeEnded("another process has taken over the topic's log", topic=topic.topic)
        owner.states = states

    def stage(self, ranges: Sequence[TranslatedRange]) -> None:
        assert self._opened is not None
        self._servers.registry.files.stage(self._opened.topic.topic, ranges, table_offsets=self._opened.fence)

    def commit(self) -> Mapping[int, int]:
        assert self._opened is not None
        opened = self._opened.topic
        self._commit(opened.staged)
        ends = self._servers.registry.files.committed_ends(opened.topic)
        return {partition: end.next_offset for partition, end in ends.items()}

    def _open(self) -> OpenedTopic:
        topic, registry = self._topic, self._servers.registry
        rows = {row.topic: row for row in registry.topics.every() if row.cluster_id == FLIGHT_CLUSTER}
        row = rows.get(topic.name)
        section = self._config.schema_registry
        schemas = TopicSchemas.read_or_recall(topic, section, known=row, registry=registry)
        topic_id = row.topic_id if row is not None else uuid4()
        opened = open_topic(
            schemas,
            TopicDescription(topic_id=topic_id, partitions={}),
            RegisteredTopic(row=row),
            self._servers,
            cluster_id=FLIGHT_CLUSTER,
            notes_hold=True,
        )
        if schemas.schema_registry is not None:
            registry.last_known.remember_schemas(opened.topic, schemas.schema_registry, schemas.news)
        return opened

    def _commit(self, staged: StagedTopic) -> None:
        """Raises CatalogUnreachable and PartitionAhead."""
        registry, catalog = self._servers.registry, self._servers.catalog
        report = commit_pending(staged, registry, catalog, ignore)
        for error in report.ahead.values():
            assert isinstance(error, PartitionAhead)
            raise error
        if report.is_new:
            catalog.housekeep(staged.table, SnapshotRetention(seconds=self._topic.snapshot_retention))
            topic = ChoreTopic(topic=staged.topic, opened=staged)
            self._chores.run("after commit", (topic,), registry, is_over=lambda: False)
