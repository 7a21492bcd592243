"""Exports selected records to a stream, as JSON lines or Arrow IPC. A few batches are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from archiver.archive.records import RECORDS
from archiver.archive.topic_archive import TopicArchive
from archiver.replay.jsonl import render
from archiver.replay.selection import Selection


def records(archive: TopicArchive, selection: Selection) -> Iterator[pa.RecordBatch]:
    """Give the selected records in batches of the schema RECORDS: partition by partition, in order of offset."""
    for wanted in selection.resolve(archive):
        for batch in archive.records(wanted.partition, wanted.start_offset, wanted.end_offset):
            yield batch.select(RECORDS.names)


def write_jsonl(archive: TopicArchive, selection: Selection, stream: BinaryIO) -> int:
    """Write the selected records as JSON lines (see `jsonl`) and return how many."""
    rows = 0
    for batch in records(archive, selection):
        stream.writelines(render(archive.topic, batch))
        rows += batch.num_rows
    return rows


def write_arrow(archive: TopicArchive, selection: Selection, stream: BinaryIO) -> int:
    """Write the selected records as an Arrow IPC stream and return how many. The schema's metadata names the topic."""
    rows = 0
    schema = RECORDS.with_metadata({"topic": archive.topic})
    with pa.ipc.new_stream(stream, schema) as writer:
        for batch in records(archive, selection):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows
