"""A topic's table as loaded (docs/concepts.md)."""

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
from catalog.iceberg.partition_spec import own_partitioning
from catalog.iceberg.written_lists import WrittenLists
from catalog.model import PartitionOffset, TopicRow
from catalog.partitioning import Partitioning
from schema_mapping.columns.fixed_ids import FLAT_INGEST_TIMESTAMP_ID

if TYPE_CHECKING:
    from schema_mapping.row import PartitionSource

DATA_PATH: Final = "write.data.path"
"""The table property by which an operator may put data files into another folder."""

METADATA_PATH: Final = "write.metadata.path"
"""The table property by which an operator may put manifests into another folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTable:
    """Its owner was checked. Never refresh `iceberg` in place.

    The next commit doesn't read `lists` that were written through this catalog.
    """

    topic: TopicRow
    iceberg: Table
    loaded: float = field(default_factory=time.monotonic, compare=False, repr=False)
    lists: WrittenLists = field(default_factory=WrittenLists, compare=False, repr=False)

    @property
    def age(self) -> float:
        return time.monotonic() - self.loaded

    def with_storage_of(self, later: Self) -> Self:
        """Take the storage credentials of a `later` load."""
        old, new = self.iceberg, later.iceberg
        iceberg = Table(old.name(), old.metadata, old.metadata_location, new.io, new.catalog, new.config)
        return replace(self, iceberg=iceberg)

    @property
    def uuid(self) -> UUID:
        return self.iceberg.metadata.table_uuid

    @property
    def location(self) -> str:
        return self.iceberg.metadata.location.rstrip("/")

    @property
    def data_location(self) -> str:
        return self.properties.get(DATA_PATH, f"{self.location}/data").rstrip("/")

    @property
    def metadata_location(self) -> str:
        return self.properties.get(METADATA_PATH, f"{self.location}/metadata").rstrip("/")

    @property
    def properties(self) -> dict[str, str]:
        return self.iceberg.metadata.properties

    @property
    def bloom_filters(self) -> BloomFilters:
        return bloom_filters(self.schema, self.properties)

    @property
    def offsets(self) -> dict[int, PartitionOffset]:
        return decode_offsets(self.properties.get(keys.OFFSETS, "{}"))

    @property
    def first_offsets(self) -> dict[int, int]:
        """Only of partitions with retired records."""
        return decode_first_offsets(self.properties.get(keys.FIRST_OFFSETS, "{}"))

    @property
    def schema(self) -> Schema:
        return self.iceberg.metadata.schema()

    @property
    def last_column_id(self) -> int:
        """The highest field id ever assigned, by any engine."""
        return self.iceberg.metadata.last_column_id

    @property
    def ledger_version(self) -> int:
        return int(self.properties.get(keys.LEDGER_VERSION, "0"))

    @property
    def last_field_id(self) -> int:
        return int(self.properties.get(keys.LAST_FIELD_ID, "0"))

    @property
    def snapshot_id(self) -> int | None:
        return self.iceberg.metadata.current_snapshot_id

    @property
    def last_sequence_number(self) -> int:
        """The highest on any branch. A lower one is an older state."""
        return self.iceberg.metadata.next_sequence_number() - 1

    @property
    def partitioning(self) -> Partitioning:
        """Raises PartitioningChanged if it isn't the archiver's."""
        return own_partitioning(self.iceberg.metadata, self.topic.table)

    @property
    def partition_source(self) -> PartitionSource:
        """Rows keep both copies if another engine partitions by the nested one with the same unit."""
        return "flat" if FLAT_INGEST_TIMESTAMP_ID in self.schema.field_ids else "nested"

    @property
    def is_recalled(self) -> bool:
        """The registry's copy, without history: the catalog is down."""
        return not self.iceberg.metadata_location

    @property
    def io(self) -> FileIO:
        return self.iceberg.io

    @property
    def io_properties(self) -> dict[str, str]:
        """They open the storage in another process. Contain secrets."""
        return {name: value for name, value in self.io.properties.items() if isinstance(value, str)}
