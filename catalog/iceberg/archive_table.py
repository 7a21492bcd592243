"""A topic's table as it was when it was loaded: the answers that ingest and replay need (docs/concepts.md)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Self
from uuid import UUID

from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from catalog.iceberg import properties as keys
from catalog.iceberg.bloom_filters import BloomFilters, bloom_filters
from catalog.iceberg.offsets import decode_first_offsets, decode_offsets
from catalog.iceberg.partition_spec import INGEST_IDS, own_partitioning
from catalog.iceberg.partitions import current_field
from catalog.model import PartitionOffset, TopicRow
from catalog.partitioning import PartitionColumn, Partitioning
from schema_mapping.columns.fixed_ids import FLAT_INGEST_TIMESTAMP_ID

if TYPE_CHECKING:
    from schema_mapping.row import PartitionSource

DATA_PATH: Final = "write.data.path"
"""The table property by which an operator may put data files into another folder."""

METADATA_PATH: Final = "write.metadata.path"
"""The table property by which an operator may put manifests into another folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTable:
    """A topic's table. Its owner was checked. `iceberg` is pyiceberg's table; never refresh it in place."""

    topic: TopicRow
    iceberg: Table
    loaded: float = field(default_factory=time.monotonic, compare=False, repr=False)

    @property
    def age(self) -> float:
        """How many seconds ago it was loaded."""
        return time.monotonic() - self.loaded

    def with_storage_of(self, later: Self) -> Self:
        """The same state of the table, with the storage credentials of a `later` load."""
        old, new = self.iceberg, later.iceberg
        iceberg = Table(old.name(), old.metadata, old.metadata_location, new.io, new.catalog, new.config)
        return replace(self, iceberg=iceberg)

    @property
    def uuid(self) -> UUID:
        """The table's UUID."""
        return self.iceberg.metadata.table_uuid

    @property
    def location(self) -> str:
        """The folder of the table."""
        return self.iceberg.metadata.location.rstrip("/")

    @property
    def data_location(self) -> str:
        """The folder of its data files: `<location>/data`, unless an operator set another one."""
        return self.properties.get(DATA_PATH, f"{self.location}/data").rstrip("/")

    @property
    def metadata_location(self) -> str:
        """The folder of its manifests: `<location>/metadata`, unless an operator set another one."""
        return self.properties.get(METADATA_PATH, f"{self.location}/metadata").rstrip("/")

    @property
    def properties(self) -> dict[str, str]:
        """The table properties, including the metrics modes."""
        return self.iceberg.metadata.properties

    @property
    def bloom_filters(self) -> BloomFilters:
        """The columns that get bloom filters in data files, by field id."""
        return bloom_filters(self.schema, self.properties)

    @property
    def offsets(self) -> dict[int, PartitionOffset]:
        """Property `archiver.offsets`: how far each archived partition is archived."""
        return decode_offsets(self.properties.get(keys.OFFSETS, "{}"))

    @property
    def first_offsets(self) -> dict[int, int]:
        """Property `archiver.first-offsets`: where partitions begin of which records were retired."""
        return decode_first_offsets(self.properties.get(keys.FIRST_OFFSETS, "{}"))

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.iceberg.metadata.schema()

    @property
    def last_column_id(self) -> int:
        """The highest field id that anybody ever assigned in this table."""
        return self.iceberg.metadata.last_column_id

    @property
    def ledger_version(self) -> int:
        """Property `archiver.ledger-version`: the version of the ledger that the table's columns are from."""
        return int(self.properties.get(keys.LEDGER_VERSION, "0"))

    @property
    def last_field_id(self) -> int:
        """Property `archiver.last-field-id`: the highest field id of that version."""
        return int(self.properties.get(keys.LAST_FIELD_ID, "0"))

    @property
    def snapshot_id(self) -> int | None:
        """The current snapshot. None where there is none."""
        return self.iceberg.metadata.current_snapshot_id

    @property
    def last_sequence_number(self) -> int:
        """The highest sequence number of a snapshot on any branch. It only grows: a lower one is an older state."""
        return self.iceberg.metadata.next_sequence_number() - 1

    @property
    def partitioning(self) -> Partitioning:
        """How the table is partitioned. PartitioningChanged where it is not as the archiver made it."""
        metadata = self.iceberg.metadata
        own = own_partitioning(metadata, self.topic.table)
        if own is not None:
            return own
        field = current_field(metadata, self.topic.table)
        return Partitioning((PartitionColumn(field.name, str(field.transform), field.source_id),), INGEST_IDS)

    @property
    def partition_source(self) -> PartitionSource:
        """Whether the table has a flat copy of the ingest timestamp.

        It is made partitioned by that copy. If others partition it by the same unit of the nested one, rows go to the
        same partitions, and go on having both.
        """
        return "flat" if FLAT_INGEST_TIMESTAMP_ID in self.schema.field_ids else "nested"

    @property
    def is_recalled(self) -> bool:
        """Whether it is the registry's copy, without history, because the catalog could not be reached."""
        return not self.iceberg.metadata_location

    @property
    def io(self) -> FileIO:
        """The storage, with the credentials that the catalog gave this process for the table."""
        return self.iceberg.io

    @property
    def io_properties(self) -> dict[str, str]:
        """The properties that open the same storage in another process. They contain secrets."""
        return {name: value for name, value in self.io.properties.items() if isinstance(value, str)}
