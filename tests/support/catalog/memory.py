"""A catalog in memory with pyiceberg's metadata code, which can lose answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import UUID, uuid4

import requests
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    ServerError,
)
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate, TableUpdate, update_table_metadata
from pyiceberg.types import BinaryType, IntegerType, LongType, NestedField, StringType, StructType, TimestamptzType

from catalog.errors import CatalogUnreachable
from catalog.iceberg.append import Attempt
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.creation import NewTable
from catalog.iceberg.partition_spec import partitioning_for
from catalog.iceberg.properties import first_properties
from catalog.iceberg.schema_change import SchemaChange
from catalog.iceberg.written_lists import WrittenLists
from catalog.model import DataFileInfo, TopicRow, TranslatedRange, new_id
from catalog.partitioning import PartitionTerm, PartitionTuple
from tests.support.catalog.table_changes import created

TOPIC = TopicRow(id=7, cluster_id="cluster", topic="orders", topic_id=UUID(int=1), table="kafka.orders")

KAFKA = StructType(
    NestedField(10, "partition", IntegerType()),
    NestedField(11, "offset", LongType()),
    NestedField(12, "event_timestamp", TimestamptzType()),
    NestedField(13, "ingest_timestamp", TimestamptzType()),
    NestedField(14, "batch_start", LongType()),
)


def schema(*value_fields: NestedField) -> Schema:
    return Schema(
        NestedField(1, "key", StructType(NestedField(100, "__raw__", BinaryType()))),
        NestedField(2, "val", StructType(*value_fields)),
        NestedField(4, "kafka", KAFKA),
    )


ID = NestedField(101, "id", LongType())
NOTE = NestedField(102, "note", StringType())


def change(*value_fields: NestedField, version: int = 1, dropped: frozenset[int] = frozenset()) -> SchemaChange:
    columns = schema(*value_fields)
    return SchemaChange(schema=columns, version=version, owned_ids=frozenset(columns.field_ids) | dropped)


def file(path: str = "file:///nowhere.parquet", *, rows: int = 5) -> DataFileInfo:
    return DataFileInfo(path=path, size_bytes=1000, rows=rows, partition=PartitionTuple.of_time(20_000))


def span(
    partition: int, start: int, end: int, *, with_file: bool = True, epoch: int = 3, version: int = 1
) -> TranslatedRange:
    range_id = new_id()
    return TranslatedRange(
        id=range_id,
        topic="orders",
        partition=partition,
        start_offset=start,
        end_offset=end,
        schema_version=version,
        leader_epoch=epoch,
        files=(file(f"file:///nowhere/{range_id}.parquet", rows=end - start),) if with_file else (),
        created_ms=1_700_000_000_000,
    )


class MemoryCatalog:
    """`script` decides the fate of the next requests; loads lag `older_loads` states behind."""

    def __init__(self, folder: Path, *value_fields: NestedField) -> None:
        first = schema(*(value_fields or (ID,)))
        staged = new_table_metadata(
            first, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, folder.as_uri(), {}, uuid4()
        )
        new = NewTable(
            schema=first,
            partitioning=partitioning_for((PartitionTerm("day", None),), first, "nested"),
            partition_source="nested",
            properties=first_properties(TOPIC, first, ledger_version=1),
        )
        updates = new.creating(staged)
        self.metadata = created(updates)
        self.io = PyArrowFileIO()
        self.lists = WrittenLists()
        self.script: list[Callable[[Attempt], None]] = []
        self.attempts: list[Attempt] = []
        self.unreachable_loads = 0
        self.older_loads: list[int] = []
        self.states: list[TableMetadata] = [self.metadata]

    def load(self) -> ArchiveTable:
        if self.unreachable_loads:
            self.unreachable_loads -= 1
            raise CatalogUnreachable("gone for a while")
        behind = self.older_loads.pop(0) if self.older_loads else 0
        state = self.states[max(0, len(self.states) - 1 - behind)] if behind else self.metadata
        table = Table(("kafka", "orders"), state.model_copy(deep=True), "", self.io, catalog=None)  # type: ignore[arg-type]
        return ArchiveTable(topic=TOPIC, iceberg=table, lists=self.lists)

    def send(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        (self.script.pop(0) if self.script else self.apply)(attempt)

    def apply(self, attempt: Attempt) -> None:
        for requirement in attempt.requirements:
            requirement.validate(self.metadata)
        try:
            self.change(*attempt.updates)
        except ValueError as error:  # another branch took its sequence number: older REST servers answer 400
            raise BadRequestError(str(error)) from error

    def change(self, *updates: TableUpdate) -> None:
        self.metadata = update_table_metadata(self.metadata, updates, enforce_validation=True)
        self.states.append(self.metadata)

    def move_branch(self) -> None:
        head = self.metadata.current_snapshot()
        assert head is not None
        sequence = self.metadata.last_sequence_number + 1
        fresh: dict[str, object] = {
            "snapshot_id": head.snapshot_id + sequence,
            "sequence_number": sequence,
            "parent_snapshot_id": None,
            "summary": Summary(operation=Operation.APPEND),
        }
        snapshot = head.model_copy(update=fresh)
        ref = SetSnapshotRefUpdate.model_validate(
            {"ref-name": "audit", "type": SnapshotRefType.BRANCH, "snapshot-id": snapshot.snapshot_id}
        )
        self.change(AddSnapshotUpdate(snapshot=snapshot), ref)

    def lose_answer(self, attempt: Attempt) -> None:
        self.apply(attempt)
        raise requests.ReadTimeout("no answer")

    def lose_request(self, attempt: Attempt) -> None:
        raise requests.ConnectionError("never arrived")

    def deliver_twice(self, attempt: Attempt) -> None:
        self.apply(attempt)
        self.apply(attempt)

    def refuse_landed(self, attempt: Attempt) -> None:
        """As Polaris (apache/polaris#5145)."""
        self.apply(attempt)
        raise BadRequestError("CommitStateUnknownException: no answer from the database")

    def deny_landed(self, attempt: Attempt) -> None:
        self.apply(attempt)
        raise ForbiddenError("the session is over")

    def expire_landed(self, attempt: Attempt) -> None:
        self.apply(attempt)
        raise AuthorizationExpiredError("the token is over")

    def fail(self, attempt: Attempt) -> None:
        raise ServerError("internal")

    def delay(self, attempt: Attempt) -> None:
        def late(following: Attempt) -> None:
            self.apply(attempt)
            self.apply(following)

        self.script.insert(0, late)
        raise requests.ReadTimeout("no answer")

    def conflict(self, attempt: Attempt) -> None:
        raise CommitFailedException("lost the race")

    def paths(self) -> list[str]:
        snapshot = self.metadata.current_snapshot()
        manifests = snapshot.manifests(self.io) if snapshot else []
        return sorted(
            entry.data_file.file_path for manifest in manifests for entry in manifest.fetch_manifest_entry(self.io)
        )

    def spans(self) -> Sequence[str]:
        return [
            str(snapshot.summary.additional_properties.get("archiver.ranges")) for snapshot in self.metadata.snapshots
        ]
