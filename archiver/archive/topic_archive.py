"""One topic's archive: watermarks, offsets by time, and records in order.

Never reads a replaced table under the same name, nor a table that was set back (RolledBack).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final
from uuid import UUID

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from archiver.archive.assemble import NO_COERCION
from archiver.archive.coercion import Coercion
from archiver.archive.mappings import (
    FirstThatKnows,
    JournalMappings,
    KnownMappings,
    MappingSource,
    NoMappings,
    RegistryMappings,
)
from archiver.archive.offset_order import offsets_of
from archiver.archive.open_file import TopicStorage
from archiver.archive.partition_scan import OpensFile, PartitionScan, open_records
from archiver.archive.plan import TopicSnapshot, select_files
from archiver.archive.plan_cache import PlanCache
from archiver.archive.records import AS_CONSUMED, RecordShape
from archiver.archive.table_files import ManifestReader
from archiver.archive.tables import CatalogTables, TableSource
from archiver.archive.watermarks import first_offset_since, high_watermark, latest_time, low_watermark
from archiver.config import Config
from archiver.errors import ArchiveReplaced, ObjectMissing, RecordsRetired, ReplayError
from archiver.storage.formats import FORMATS, SegmentFormats
from archiver.storage.objects import ObjectStore
from archiver.storage.segment import RowRange
from catalog.iceberg import properties as keys
from catalog.iceberg.lineage import check_history
from catalog.iceberg.offsets import decode_first_offsets, decode_offsets
from catalog.model import TopicRow
from catalog.record_metadata import MetadataEntry
from catalog.term_runs import IndexState
from catalog.value_terms import Lookup
from schema_mapping.columns.ledger import LedgerState

if TYPE_CHECKING:
    from archiver.storage.journal import TableJournal


VALUES_WITHIN: Final = 5.0
"""Seconds in which the registry has to answer for values of files. Without its answer, files are opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySources:
    """Reads of the registry, by the ids of cluster and table.

    `ledger` has the columns of all schema versions; `runs` has the objects of runs.
    """

    mappings: Callable[[str, UUID], MappingSource] | None = None
    ledger: Callable[[str, UUID], LedgerState] | None = None
    values: Callable[[str, UUID, Sequence[str], Sequence[Lookup]], Mapping[str, Sequence[bool]]] | None = None
    metadata: Callable[[str, UUID, Collection[str]], Sequence[MetadataEntry]] | None = None
    index: Callable[[str, UUID, Mapping[str, str], Sequence[str]], IndexState] | None = None
    runs: ObjectStore = field(default_factory=ObjectStore)


class TopicArchive:
    """The archive of one topic. Thread-safe; `refresh` doesn't disturb running `records`."""

    def __init__(
        self,
        topic: str,
        tables: TableSource,
        *,
        registry: RegistrySources | None = None,
        formats: SegmentFormats = FORMATS,
        coercion: Coercion = NO_COERCION,
        spill: Path | None = None,
        bounded: Callable[[TopicArchive], frozenset[int]] | None = None,
    ) -> None:
        """`bounded` returns ids of columns whose bounds and null counts `snapshot.files` has.

        It may use `schema` and `ledger`. The folder `spill` caches manifests for later processes.
        """
        sources = registry or RegistrySources()
        self.topic = topic
        self._tables = tables
        self._formats = formats
        self._coercion = coercion
        self._spill = spill
        self._lock = Lock()
        table = tables.load(topic)
        self.cluster_id = table.properties.get(keys.CLUSTER_ID, "")
        self.table_uuid = table.metadata.table_uuid
        self.location = table.location()
        named = table.properties.get(keys.TOPIC_ID)
        self.topic_id = UUID(named) if named else None
        fallback = sources.mappings(self.cluster_id, self.table_uuid) if sources.mappings else NoMappings()
        self._mappings = KnownMappings(topic, fallback)
        self._ledger = sources.ledger
        self._values = sources.values
        self._metadata = sources.metadata
        self._index = sources.index
        self.runs = sources.runs
        self._schema = table.schema()
        ids = frozenset[int]() if bounded is None else bounded(self)
        cache = None if spill is None else PlanCache.below(spill)
        self._manifests = ManifestReader(counted=ids, cache=cache, bounded=ids)
        self._snapshot = self._read(table)

    def ledger(self) -> LedgerState:
        """Raise RegistryError, and ReplayError without a registry."""
        if self._ledger is None:
            raise ReplayError("conditions on columns need the registry: open the archive with one", topic=self.topic)
        return self._ledger(self.cluster_id, self.table_uuid)

    def absent_values(self, paths: Sequence[str], lookups: Sequence[Lookup]) -> Mapping[str, Sequence[bool]]:
        """Return by file, for each lookup, whether no row has the value. Raises RegistryError."""
        return {} if self._values is None else self._values(self.cluster_id, self.table_uuid, paths, lookups)

    def metadata(self, names: Collection[str]) -> Sequence[MetadataEntry]:
        """Return the metadata of records with these names, with its history.

        Raises ReplayError without a registry, and RegistryError.
        """
        if self._metadata is None:
            raise ReplayError("conditions on metadata need the registry: open the archive with one", topic=self.topic)
        return self._metadata(self.cluster_id, self.table_uuid, names)

    def index_state(self, mappings: Mapping[str, str], paths: Sequence[str]) -> IndexState:
        """Return runs of indexed columns, and the files that they cover. Raises RegistryError."""
        if self._index is None:
            return IndexState(files={})
        return self._index(self.cluster_id, self.table_uuid, mappings, paths)

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def snapshot(self) -> TopicSnapshot:
        return self._snapshot

    def refresh(self) -> TopicSnapshot:
        """Raise ArchiveReplaced if the table was recreated."""
        with self._lock:
            table = self._tables.load(self.topic)
            self._check_same(table)
            self._snapshot = self._read(table)
            return self._snapshot

    @property
    def partitions(self) -> tuple[int, ...]:
        return self._snapshot.partitions

    def watermarks(self, partition: int) -> tuple[int, int]:
        return low_watermark(self._snapshot, partition), self.end(partition)

    def first_offset(self, partition: int) -> int:
        return self._snapshot.first_offsets.get(partition, 0)

    def end(self, partition: int) -> int:
        return high_watermark(self._snapshot, partition)

    def offset_for_time(self, partition: int, timestamp: int) -> int | None:
        return first_offset_since(self._snapshot, partition, timestamp)

    def latest_time(self, partition: int) -> tuple[int, int] | None:
        return latest_time(self._snapshot, partition)

    def records(
        self,
        partition: int,
        start: int | None = None,
        end: int | None = None,
        *,
        shape: RecordShape = AS_CONSUMED,
        min_timestamp: int | None = None,
        open_file: OpensFile = open_records,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield records up to `end`, exclusive; by default all as of the last refresh.

        `min_timestamp` (ms) permits leaving out older records. Continues after a rewrite. Raises RecordsRetired if
        unread records were retired, ReplayError, StorageError and CatalogError.
        """
        snapshot = self._snapshot
        end = high_watermark(snapshot, partition) if end is None else end
        position = snapshot.first_offsets.get(partition, 0) if start is None else start
        while position < end:
            self._check_retired(snapshot, partition, position)
            try:
                rows = RowRange(partition=partition, start_offset=position, end_offset=end, min_timestamp=min_timestamp)
                opened = partial(open_file, snapshot.storage, shape)
                for batch in PartitionScan(
                    snapshot.storage, select_files(snapshot.files, rows), rows, open_file=opened
                ):
                    yield batch
                    position = int(offsets_of(batch)[-1]) + 1
            except ObjectMissing:
                fresh = self.refresh()
                if fresh.snapshot_id == snapshot.snapshot_id:
                    raise
                snapshot = fresh
            else:
                return

    def _check_retired(self, snapshot: TopicSnapshot, partition: int, position: int) -> None:
        first = snapshot.first_offsets.get(partition, 0)
        if position < first:
            raise RecordsRetired(
                "records were retired before they were read: the archive of this partition has nothing before"
                " first_offset any more. All before position was read. Read on from first_offset if the records in"
                " between aren't needed; else read them from Kafka, or from a copy of the archive",
                topic=self.topic,
                partition=partition,
                position=position,
                first_offset=first,
            )

    def _check_same(self, table: Table) -> None:
        if table.metadata.table_uuid != self.table_uuid:
            raise ArchiveReplaced(
                "the topic's table was dropped and made anew: its offsets mean other records now. Start again from an"
                " offset of the new archive, with a new consumer or a new archive object; offsets that were kept for"
                " the old one don't hold",
                topic=self.topic,
                table=".".join(table.name()),
                read_uuid=str(self.table_uuid),
                table_uuid=str(table.metadata.table_uuid),
            )

    def _read(self, table: Table) -> TopicSnapshot:
        self._schema = table.schema()
        check_history(table.metadata, topic=self.topic, table=".".join(table.name()))
        offsets = decode_offsets(table.properties.get(keys.OFFSETS, "{}"))
        return TopicSnapshot(
            snapshot_id=table.metadata.current_snapshot_id,
            files=self._manifests.files(table),
            next_offsets={partition: state.next_offset for partition, state in offsets.items()},
            leader_epochs={partition: state.leader_epoch for partition, state in offsets.items()},
            first_offsets=decode_first_offsets(table.properties.get(keys.FIRST_OFFSETS, "{}")),
            storage=TopicStorage.of_store(
                ObjectStore.of_table(table), self._formats, self._mappings, coercion=self._coercion, spill=self._spill
            ),
        )


def open_archive(
    config: Config,
    topic: str,
    tables: TableSource | None = None,
    *,
    coerces: bool = True,
    bounded: Callable[[TopicArchive], frozenset[int]] | None = None,
) -> TopicArchive:
    """Open an archive. Raises CatalogError and StorageError.

    With `coerces`, missing envelopes are added if the topic is configured to `coerce`. `bounded` is as in TopicArchive.
    """
    source = tables or CatalogTables(config)

    def registry(cluster_id: str, table_uuid: UUID) -> MappingSource:
        registry_mappings = RegistryMappings(
            dsn=config.registry.dsn, cluster_id=cluster_id, topic=topic, table_uuid=table_uuid
        )
        if config.archive.journal is None:
            return registry_mappings

        def journal() -> TableJournal:
            from archiver.storage.journal import Journal

            return Journal.of(config).named(config.topic(topic).table, table_uuid)

        return FirstThatKnows(registry_mappings, JournalMappings(journal))

    def ledger(cluster_id: str, table_uuid: UUID) -> LedgerState:
        from catalog.registry import RegistryReader

        with RegistryReader(config.registry.dsn, connections=1) as reader:
            row = reader.topics.find(cluster_id=cluster_id, topic=topic, table_uuid=table_uuid)
            return reader.ledger.load(_known(row, topic, "conditions on columns need the schema's history"))

    def values(
        cluster_id: str, table_uuid: UUID, paths: Sequence[str], lookups: Sequence[Lookup]
    ) -> Mapping[str, Sequence[bool]]:
        from catalog.registry import RegistryReader

        with RegistryReader(config.registry.dsn, connections=1, answers_within=VALUES_WITHIN) as reader:
            row = reader.topics.find(cluster_id=cluster_id, topic=topic, table_uuid=table_uuid)
            return {} if row is None else reader.values.absent(row, paths, lookups)

    def metadata(cluster_id: str, table_uuid: UUID, names: Collection[str]) -> Sequence[MetadataEntry]:
        from catalog.registry import RegistryReader

        with RegistryReader(config.registry.dsn, connections=1) as reader:
            row = reader.topics.find(cluster_id=cluster_id, topic=topic, table_uuid=table_uuid)
            return reader.metadata.load(_known(row, topic, "conditions on metadata need its entries"), names)

    def index(cluster_id: str, table_uuid: UUID, mappings: Mapping[str, str], paths: Sequence[str]) -> IndexState:
        from catalog.registry import RegistryReader

        with RegistryReader(config.registry.dsn, connections=1, answers_within=VALUES_WITHIN) as reader:
            row = reader.topics.find(cluster_id=cluster_id, topic=topic, table_uuid=table_uuid)
            return IndexState(files={}) if row is None else reader.index.state(row, mappings, paths)

    coercion = Coercion.of_topic(config.topic(topic)) if coerces else NO_COERCION
    sources = RegistrySources(mappings=registry, ledger=ledger, values=values, metadata=metadata)
    if config.index.location is not None:
        sources = replace(sources, index=index, runs=ObjectStore.of(config.catalog, attempts=1))
    spool = config.archive.spool
    return TopicArchive(
        topic,
        source,
        registry=sources,
        coercion=coercion,
        spill=spool,
        bounded=bounded,
    )


def _known(row: TopicRow | None, topic: str, need: str) -> TopicRow:
    if row is None:
        raise ReplayError(
            f"the registry doesn't know this table, and {need}: run `archiver registry rebuild {topic}`", topic=topic
        )
    return row
