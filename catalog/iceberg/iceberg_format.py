"""Tables that pyiceberg can't write or read: format v3 and its types.

v3 rows are read, including deletion vectors, but not written: v3 snapshots number rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from catalog.errors import FormatUpgraded
from catalog.iceberg.archive_table import ArchiveTable

NEWEST_WRITTEN: Final = 2


def check_writable(table: ArchiveTable) -> None:
    """Raise FormatUpgraded for a format that isn't written."""
    metadata = table.iceberg.metadata
    if metadata.format_version > NEWEST_WRITTEN:
        raise FormatUpgraded(
            f"others upgraded the table to Iceberg's format v{metadata.format_version}, which this archiver reads and"
            " can't write: nothing more is committed to it, and what is staged stays staged. Iceberg has no way back"
            " from it. If nobody wrote to the table since, register it anew from its last metadata file of v2;"
            " otherwise archive the topic to another `table` with a registry (database) of its own; this one stays"
            " readable with the old configuration",
            topic=table.topic.topic,
            table=table.topic.table,
            format_version=metadata.format_version,
            metadata_before=[entry.metadata_file for entry in metadata.metadata_log][-1:],
        )


def unreadable_types(types: Sequence[str], **where: str) -> FormatUpgraded:
    return FormatUpgraded(
        "others gave the table columns of a type that this archiver doesn't know, so it can't read the table's"
        " schema: drop these columns, then forget the schemas that had them: in Spark SQL `CALL"
        " system.expire_snapshots(table => '...', clean_expired_metadata => true)` once their snapshots may go",
        **where,
        types=list(types),
    )
