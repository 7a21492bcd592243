"""Notes about empty partitions and offsets that aren't archived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from archiver.archive.topic_archive import TopicArchive
from archiver.records.selection import AtOffset, Selection

MOST_NOTES: Final = 10


def range_notes(archive: TopicArchive, selection: Selection) -> Iterator[str]:
    """For partitions with fewer records than requested, at most MOST_NOTES."""
    notes = [note for partition in selection.chosen(archive) for note in _of_partition(archive, selection, partition)]
    yield from notes[:MOST_NOTES]
    if len(notes) > MOST_NOTES:
        yield f"and {len(notes) - MOST_NOTES:,} more such partitions"


def _of_partition(archive: TopicArchive, selection: Selection, partition: int) -> Iterator[str]:
    low, high = archive.watermarks(partition)
    start, end = selection.start_offset(archive, partition), selection.end_offset(archive, partition)
    has = f"the archive has offsets {low:,} to {high - 1:,}" if low < high else "nothing of it is archived"
    if max(start, low) >= end:
        yield f"partition {partition}: nothing in this range; {has}"
        return
    asked = [
        *([f"from {start:,}"] if isinstance(selection.start, AtOffset) and 0 < start < low else []),
        *(
            [f"up to {selection.end.offset:,}"]
            if isinstance(selection.end, AtOffset) and selection.end.offset > high
            else []
        ),
    ]
    first = archive.first_offset(partition)
    if start < first:
        yield f"partition {partition}: begins at {first:,}; the records before it were retired"
    if asked:
        yield f"partition {partition}: asked for {' '.join(asked)}; {has}"
