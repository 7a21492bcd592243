"""A table as last loaded, for when the catalog is down (docs/troubleshooting.md). Has no history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.io import load_file_io
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil

from catalog.errors import CatalogUnreachable
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.credentials import is_vended
from catalog.model import TopicRow

_HISTORY: Mapping[str, object] = {
    "snapshots": [],
    "refs": {},
    "current_snapshot_id": None,
    "snapshot_log": [],
    "metadata_log": [],
    "statistics": [],
    "partition_statistics": [],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LastKnownTable:
    """`metadata` is JSON. `vended` if only the catalog has the storage credentials."""

    metadata: str
    vended: bool

    @classmethod
    def of(cls, table: ArchiveTable, own: Mapping[str, str]) -> LastKnownTable:
        metadata = table.iceberg.metadata
        slim = metadata.model_copy(update={**_HISTORY, "schemas": [metadata.schema()]})
        return cls(metadata=slim.model_dump_json(), vended=is_vended(table.io_properties, own))

    def table(self, topic: TopicRow, own: Mapping[str, str]) -> ArchiveTable:
        """Raises CatalogUnreachable if configured properties don't open its storage."""
        if self.vended:
            raise CatalogUnreachable(
                "the catalog gives no answer, and only it has the credentials of the table's storage: archiving waits."
                " With storage credentials of its own in [catalog] the archiver would go on",
                table=topic.table,
            )
        from catalog.iceberg.file_io import suited

        metadata = TableMetadataUtil.parse_raw(self.metadata)
        io = suited(load_file_io(dict(own), metadata.location), metadata.location)
        identifier = tuple(topic.table.split("."))
        return ArchiveTable(topic=topic, iceberg=Table(identifier, metadata, "", io, catalog=None))  # type: ignore[arg-type]
