"""Tables as they were last loaded, kept in the registry for while the catalog is away (docs/operations.md).

Location, partitioning, columns and properties, offsets among them; no history. Functions that take a connection want it
inside a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb
from pyiceberg.io import load_file_io
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil

from catalog.archive_table import ArchiveTable
from catalog.credentials import is_vended
from catalog.errors import CatalogUnreachable
from catalog.model import TopicRow
from catalog.postgres import Connection

_KEY = "table"
_NAME = "known"
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
class KnownTable:
    """A table's metadata without its history, as JSON; `vended`: its storage wants credentials of the catalog's."""

    metadata: str
    vended: bool

    @classmethod
    def of(cls, table: ArchiveTable, own: Mapping[str, str]) -> KnownTable:
        """What to keep of a table; `own` are the catalog's properties as configured."""
        metadata = table.iceberg.metadata
        slim = metadata.model_copy(update={**_HISTORY, "schemas": [metadata.schema()]})
        return cls(metadata=slim.model_dump_json(), vended=is_vended(table.io_properties, own))

    def table(self, topic: TopicRow, own: Mapping[str, str]) -> ArchiveTable:
        """The table, with storage by the configured properties. CatalogUnreachable where those aren't enough."""
        if self.vended:
            raise CatalogUnreachable(
                "the catalog gives no answer, and only it has the credentials of the table's storage: archiving waits."
                " With storage credentials of its own in [catalog] the archiver would go on",
                table=topic.table,
            )
        metadata = TableMetadataUtil.parse_raw(self.metadata)
        io = load_file_io(dict(own), metadata.location)
        identifier = tuple(topic.table.split("."))
        return ArchiveTable(topic=topic, iceberg=Table(identifier, metadata, "", io, catalog=None))  # type: ignore[arg-type]


def remember(connection: Connection, topic: TopicRow, known: KnownTable) -> None:
    """Keep a table as it is now."""
    value: dict[str, Any] = {"metadata": json.loads(known.metadata), "vended": known.vended}
    connection.execute(
        "INSERT INTO metadata (topic_id, key, name, value) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (topic_id, key, name) DO UPDATE SET value = excluded.value, updated = now()"
        " WHERE metadata.value IS DISTINCT FROM excluded.value",
        (topic.id, _KEY, _NAME, Jsonb(value)),
    )


def recall(connection: Connection, topic: TopicRow) -> KnownTable | None:
    """The table as it was last kept; None where it never was."""
    found = connection.execute(
        "SELECT value FROM metadata WHERE topic_id = %s AND key = %s AND name = %s", (topic.id, _KEY, _NAME)
    ).fetchone()
    return None if found is None else KnownTable(metadata=json.dumps(found[0]["metadata"]), vended=found[0]["vended"])
