"""Accepted gaps in the summaries of a table's snapshots, for when the journal doesn't have them."""

from __future__ import annotations

from catalog.iceberg import properties as keys
from catalog.iceberg.archive_table import ArchiveTable
from catalog.iceberg.offsets import decode_spans
from catalog.model import TranslatedRange, new_id


def told_losses(table: ArchiveTable) -> list[tuple[TranslatedRange, str | None]]:
    """A range for each gap that a retained snapshot names, with the commit that recorded it."""
    found: list[tuple[TranslatedRange, str | None]] = []
    for snapshot in table.iceberg.metadata.snapshots:
        summary = snapshot.summary.additional_properties if snapshot.summary else {}
        for partition, start, end in decode_spans(summary.get(keys.LOST, "{}")):
            lost = TranslatedRange(
                id=new_id(),
                topic=table.topic.topic,
                partition=partition,
                start_offset=start,
                end_offset=end,
                schema_version=table.ledger_version,
                leader_epoch=-1,
                files=(),
                created_ms=snapshot.timestamp_ms,
                lost=True,
            )
            found.append((lost, summary.get(keys.COMMIT_ID)))
    return found
