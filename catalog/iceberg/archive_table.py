"""A topic's table as it stood when it was loaded: what ingest and replay ask of it (docs/concepts.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self
from uuid import UUID

from pyiceberg.io import FileIO
from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from catalog.iceberg import properties as keys
from catalog.iceberg.offsets import decode_offsets
from catalog.iceberg.partitions import PartitionBy, current_field, unit_of
from catalog.model import PartitionOffset, TopicRow
from schema_mapping.columns.fixed import FLAT_INGEST_TIMESTAMP_ID
from schema_mapping.row import PartitionSource

DATA_PATH: Final = "write.data.path"
"""The table property by which an operator may put data files elsewhere."""

METADATA_PATH: Final = "write.metadata.path"
"""The table property by which an operator may put manifests elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTable:
    """A topic's table, its ownership checked; `iceberg` is pyiceberg's, never to be refreshed in place."""

    topic: TopicRow
    iceberg: Table

    def with_storage_of(self, later: Self) -> Self:
        """The table as it was loaded, with the storage credentials that it was given when loaded later."""
        old, new = self.iceberg, later.iceberg
        iceberg = Table(old.name(), old.metadata, old.metadata_location, new.io, new.catalog, new.config)
        return replace(self, iceberg=iceberg)

    @property
    def uuid(self) -> UUID:
        """The table's UUID."""
        return self.iceberg.metadata.table_uuid

    @property
    def location(self) -> str:
        """Where the table lies; data files go below `<location>/data/`."""
        return self.iceberg.metadata.location.rstrip("/")

    @property
    def data_location(self) -> str:
        """Where its data files go: `<location>/data`, unless an operator said otherwise."""
        return self.properties.get(DATA_PATH, f"{self.location}/data").rstrip("/")

    @property
    def metadata_location(self) -> str:
        """Where its manifests go: `<location>/metadata`, unless an operator said otherwise."""
        return self.properties.get(METADATA_PATH, f"{self.location}/metadata").rstrip("/")

    @property
    def properties(self) -> dict[str, str]:
        """Table properties, the metrics modes among them."""
        return self.iceberg.metadata.properties

    @property
    def offsets(self) -> dict[int, PartitionOffset]:
        """Property `archiver.offsets`: how far each partition is archived; one that never was is not there."""
        return decode_offsets(self.properties.get(keys.OFFSETS, "{}"))

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.iceberg.metadata.schema()

    @property
    def last_column_id(self) -> int:
        """The highest field id ever given in this table, by anybody."""
        return self.iceberg.metadata.last_column_id

    @property
    def ledger_version(self) -> int:
        """Property `archiver.ledger-version`: the ledger's version that the table's columns belong to."""
        return int(self.properties.get(keys.LEDGER_VERSION, "0"))

    @property
    def last_field_id(self) -> int:
        """Property `archiver.last-field-id`: the highest field id of that version."""
        return int(self.properties.get(keys.LAST_FIELD_ID, "0"))

    @property
    def snapshot_id(self) -> int | None:
        """The current snapshot."""
        return self.iceberg.metadata.current_snapshot_id

    @property
    def partition_field(self) -> PartitionField:
        """The one partition field; PartitioningChanged where it isn't as we made it."""
        return current_field(self.iceberg.metadata, self.topic.table)

    @property
    def partition_by(self) -> PartitionBy:
        """The unit of `DataFileInfo.partition_value`."""
        unit = unit_of(self.partition_field)
        assert unit is not None
        return unit

    @property
    def partition_source(self) -> PartitionSource:
        """Which copy of the ingest timestamp is partitioned by: the one in `kafka`, or the flat one."""
        return "flat" if self.partition_field.source_id == FLAT_INGEST_TIMESTAMP_ID else "nested"

    @property
    def is_recalled(self) -> bool:
        """Whether it comes from the registry's memory, without history, because the catalog was away."""
        return not self.iceberg.metadata_location

    @property
    def io(self) -> FileIO:
        """Storage with the credentials the catalog gave for this table, for this process."""
        return self.iceberg.io

    @property
    def io_properties(self) -> dict[str, str]:
        """What builds the same storage in another process; holds secrets."""
        return {name: value for name, value in self.io.properties.items() if isinstance(value, str)}
