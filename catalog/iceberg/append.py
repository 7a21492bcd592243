"""One attempt to append ranges, ready to send, which asserts its snapshot.

pyiceberg's `commit_transaction` deletes the manifests on a 409, which breaks the table if an earlier delivery landed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertCurrentSchemaId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)

from catalog.digests import DIGEST_ALGORITHM, add_digests
from catalog.errors import NewerFormat
from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.attempt_names import new_attempt_id
from catalog.iceberg.bloom_filters import changed_properties
from catalog.iceberg.creation import sort_order
from catalog.iceberg.deletion_gate import NeverLanded, delete_all
from catalog.iceberg.iceberg_format import check_writable
from catalog.iceberg.light_transaction import LightTransaction
from catalog.iceberg.lineage import Head
from catalog.iceberg.offsets import advance, encode_offsets, encode_ranges, encode_spans
from catalog.iceberg.partition_spec import record_of, source_ids
from catalog.iceberg.partitions import spec_of
from catalog.iceberg.producers import merge_append
from catalog.iceberg.schema_change import SchemaChange, check_new_ids, merge
from catalog.model import DataFileInfo, TranslatedRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    table: ArchiveTable
    parent: int | None
    snapshot_id: int
    updates: tuple[TableUpdate, ...]
    requirements: tuple[TableRequirement, ...]
    written: tuple[str, ...]

    @property
    def sequence(self) -> int:
        return self.table.last_sequence_number + 1

    def is_lost(self, table: ArchiveTable) -> bool:
        """Whether `table` proves that the attempt never lands: another snapshot has its number.

        A missing snapshot alone may have expired.
        """
        snapshots = table.iceberg.metadata.snapshots
        return all(snapshot.snapshot_id != self.snapshot_id for snapshot in snapshots) and any(
            self.is_beaten_by(snapshot.snapshot_id, snapshot.sequence_number) for snapshot in snapshots
        )

    def is_beaten_by(self, snapshot_id: int, sequence: int | None) -> bool:
        """Never true without a parent: catalogs don't compare such attempts."""
        return self.parent is not None and sequence == self.sequence and snapshot_id != self.snapshot_id

    def discard(self) -> None:
        """Only for attempts that can't land."""
        delete_all(self.table.io, self.written, NeverLanded(self.written))


def prepare(
    table: ArchiveTable,
    ranges: Sequence[TranslatedRange],
    *,
    change: SchemaChange | None,
    commit_id: str,
    begin: Callable[[Table], Transaction] = LightTransaction,
) -> Attempt:
    """Ranges without files make an empty snapshot: only snapshots guard offsets."""
    transaction = begin(table.iceberg)
    properties = {keys.OFFSETS: encode_offsets(advance(table.offsets, ranges))}
    properties |= evolve(transaction, table, change)
    summary = {keys.COMMIT_ID: commit_id, keys.RANGES: encode_ranges(ranges), **_digest(ranges), **_lost(ranges)}
    producer = merge_append(transaction, summary, table.lists)
    properties[keys.HEAD] = head_text(table, producer)
    for range_ in ranges:
        for file in range_.files:
            producer.append_data_file(data_file(table, file))
    return attempt_of(table, transaction, producer, properties)


def head_text(table: ArchiveTable, producer: Any) -> str:
    sequence = table.iceberg.metadata.next_sequence_number()
    return Head(snapshot_id=producer.snapshot_id, sequence=sequence).to_text()


def attempt_of(table: ArchiveTable, transaction: Transaction, producer: Any, properties: dict[str, str]) -> Attempt:
    """Raises FormatUpgraded if the table's format can't be written."""
    check_writable(table)
    producer.commit_uuid = new_attempt_id(table.uuid)
    try:
        producer.commit()
    except BaseException:
        written = _written(producer)
        delete_all(table.io, written, NeverLanded(written))  # nothing was sent, so nothing can refer to them
        raise
    if properties:
        transaction._apply((SetPropertiesUpdate(updates=properties),))  # noqa: SLF001
    return Attempt(
        table=table,
        parent=table.snapshot_id,
        snapshot_id=producer.snapshot_id,
        updates=transaction._updates,  # noqa: SLF001
        requirements=(*transaction._requirements, AssertTableUUID(uuid=table.uuid)),  # noqa: SLF001
        written=_written(producer),
    )


def _written(producer: Any) -> tuple[str, ...]:
    return (*producer._written_manifests, *producer._written_manifest_lists)  # noqa: SLF001


def evolve(transaction: Transaction, table: ArchiveTable, wanted: SchemaChange | None) -> dict[str, str]:
    """Columns that another engine renamed or dropped are no longer measured."""
    current = schema = table.schema
    change = None if wanted is None else wanted.for_table(current, table.ledger_version)
    properties: dict[str, str] = {}
    if change is not None:
        # a spec whose column is gone makes a table unreadable
        change = replace(change, owned_ids=change.owned_ids - source_ids(table.iceberg.metadata))
        check_new_ids(change, last_field_id=table.last_field_id, last_column_id=table.last_column_id)
        schema = merge(change, current)
        properties = {
            keys.LEDGER_VERSION: str(change.version),
            keys.LAST_FIELD_ID: str(max(change.schema.highest_field_id, table.last_field_id)),
            **keys.superseded_property(change.superseded),
        }
    removals = keys.stale_metrics(schema, table.properties)
    if removals or change is not None:
        properties |= keys.metrics_properties(schema, table.properties)
    if schema != current:
        guard = AssertCurrentSchemaId.model_validate({"current-schema-id": current.schema_id})
        transaction._apply(_schema_updates(table, schema), (guard,))  # noqa: SLF001
    if wanted is not None:
        filters = changed_properties(table.properties, before=current, after=schema, wanted=wanted.bloom_filters)
        removals = [*removals, *filters.removals]
        properties |= filters.updates
    if removals:
        transaction._apply((RemovePropertiesUpdate(removals=removals),))  # noqa: SLF001
    return properties


def _schema_updates(table: ArchiveTable, schema: Schema) -> tuple[TableUpdate, ...]:
    # A catalog gives a schema that it knows its old id, and the snapshot must name the id that the schema will have.
    schemas = table.iceberg.metadata.schemas
    for old in schemas:
        if old == schema:
            return (_set_current(old),)
    fresh = schema.model_copy(update={"schema_id": 1 + max(old.schema_id for old in schemas)})
    return (AddSchemaUpdate(schema=fresh), _set_current(fresh))


def _set_current(schema: Schema) -> SetCurrentSchemaUpdate:
    return SetCurrentSchemaUpdate.model_validate({"schema-id": schema.schema_id})


def data_file(
    table: ArchiveTable,
    file: DataFileInfo,
    *,
    instead_of: DataFile | None = None,
    is_staged: bool = True,
    is_sorted: bool = True,
) -> DataFile:
    """Raises PartitioningChanged if the table lacks the partition, NewerFormat if Iceberg lacks the format."""
    metadata = table.iceberg.metadata
    if instead_of is not None:
        partition, spec_id = instead_of.partition, instead_of.spec_id
    else:
        spec = spec_of(metadata, file, table.topic.table, is_staged=is_staged)
        partition, spec_id = record_of(file.partition, spec, table.schema), spec.spec_id
    entry = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.path,
        file_format=_file_format(file, table),
        partition=partition,
        record_count=file.rows,
        file_size_in_bytes=file.size_bytes,
        column_sizes=dict(file.column_sizes),
        value_counts=dict(file.value_counts),
        null_value_counts=dict(file.null_value_counts),
        nan_value_counts=dict(file.nan_value_counts),
        lower_bounds=dict(file.lower_bounds),
        upper_bounds=dict(file.upper_bounds),
        split_offsets=list(file.split_offsets) or None,
        sort_order_id=_sort_order_id(table) if is_sorted else None,
        equality_ids=None,
        key_metadata=None,
    )
    entry.spec_id = spec_id
    return entry


def _file_format(file: DataFileInfo, table: ArchiveTable) -> FileFormat:
    try:
        file_format = FileFormat(file.format)
    except ValueError:
        file_format = FileFormat.PUFFIN
    if file_format is FileFormat.PUFFIN:  # Puffin files have only statistics and deletes
        raise NewerFormat(
            "a file has a format that this archiver can't put into a table: commit it with the version that wrote it",
            table=table.topic.table,
            file=file.path,
            format=file.format,
        )
    return file_format


def _digest(ranges: Sequence[TranslatedRange]) -> dict[str, str]:
    digest = add_digests(range_.digest for range_ in ranges)
    return {} if digest is None else {keys.DIGEST: digest, keys.DIGEST_ALGORITHM: DIGEST_ALGORITHM}


def _lost(ranges: Sequence[TranslatedRange]) -> dict[str, str]:
    lost = tuple(range_ for range_ in ranges if range_.lost)
    return {keys.LOST: encode_spans(lost)} if lost else {}


def _sort_order_id(table: ArchiveTable) -> int | None:
    ours = sort_order(table.schema).fields
    return next((order.order_id for order in table.iceberg.metadata.sort_orders if order.fields == ours), None)
