"""Show records that an erasure found, as `archiver replay --decode` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing

from archiver.archive.records import AS_DECODED
from archiver.archive.topic_archive import TopicArchive
from archiver.replay.jsonl import render_decoded
from archiver.upkeep.erase.spans import Span


def shown_records(archive: TopicArchive, spans: Iterable[Span]) -> Iterator[bytes]:
    """Yield JSON lines, without records that only retired files have. Raises as TopicArchive."""
    for partition, first, end in spans:
        start = max(first, archive.first_offset(partition))
        with closing(archive.records(partition, start, end, shape=AS_DECODED)) as batches:
            for batch in batches:
                yield from render_decoded(archive.topic, batch)
