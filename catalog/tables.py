"""Iceberg tables in a REST catalog: create with our own field ids, load, check whose they are (DESIGN §3, §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self
from uuid import UUID

from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from catalog.model import PartitionOffset, TopicRow, TranslatedRange

PartitionBy = Literal["hour", "day", "month"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """The schema a commit needs: the ledger's columns, and the ledger version they belong to."""

    schema: Schema
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveTable:
    """A topic's table as it stood when it was loaded."""

    topic: TopicRow
    table: Table

    @property
    def offsets(self) -> dict[int, PartitionOffset]:
        """Property `archiver.offsets`."""
        raise NotImplementedError

    @property
    def uuid(self) -> UUID:
        """The table's UUID."""
        raise NotImplementedError

    @property
    def location(self) -> str:
        """Where the table lies; data files go to `<location>/data/`."""
        raise NotImplementedError

    @property
    def properties(self) -> dict[str, str]:
        """Table properties, the metrics modes among them."""
        raise NotImplementedError

    @property
    def schema(self) -> Schema:
        """The current schema."""
        raise NotImplementedError

    @property
    def last_column_id(self) -> int:
        """The highest field id ever given in this table, by anybody."""
        raise NotImplementedError

    @property
    def partition_by(self) -> PartitionBy:
        """The transform of the partition field: the unit of `DataFileInfo.partition_value`."""
        raise NotImplementedError

    @property
    def partition_name(self) -> str:
        """`ingest_hour`, `ingest_day` or `ingest_month`."""
        raise NotImplementedError

    @property
    def io(self) -> FileIO:
        """Storage with the catalog's credentials for this table; `io.properties` rebuild it elsewhere."""
        raise NotImplementedError


class TableCatalog:
    """An Iceberg REST catalog. One for each thread."""

    def __init__(self, properties: Mapping[str, str], *, timeout_seconds: float = 60.0) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        raise NotImplementedError

    def load(self, topic: TopicRow) -> ArchiveTable | None:
        """The topic's table, None where there is none. NotOurTable, NewerFormat, TopicRecreated, CatalogUnreachable."""
        raise NotImplementedError

    def ensure(
        self,
        topic: TopicRow,
        change: SchemaChange,
        *,
        partition_by: PartitionBy = "day",
        partition_source: Literal["nested", "flat"] = "nested",
    ) -> ArchiveTable:
        """The topic's table, made (its namespace too) where there is none."""
        raise NotImplementedError

    def commit(
        self, topic: TopicRow, ranges: Sequence[TranslatedRange], *, change: SchemaChange | None, commit_id: str
    ) -> object:
        """Committed | Moved | Unresolved: see `catalog.commit`."""
        raise NotImplementedError

    def settle(self, topic: TopicRow, ranges: Sequence[TranslatedRange]) -> object:
        """Which ranges are in the table already, which never will be, which still wait: see `catalog.commit`."""
        raise NotImplementedError
