"""Export selected records, with a few batches in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from archiver.archive.records import AS_CONSUMED, AS_DECODED, RECORDS, RecordShape
from archiver.archive.topic_archive import TopicArchive
from archiver.observer import Observer, ignore
from archiver.records.matching import SelectedRecords
from archiver.records.selection import Selection
from archiver.replay.jsonl import render, render_decoded


class ByteSink(Protocol):
    @property
    def closed(self) -> bool: ...

    def write(self, data: bytes, /) -> object: ...

    def writelines(self, lines: Iterable[bytes], /) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportStarted:
    """`offsets` is an upper bound of the records."""

    offsets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    offsets: int
    records: int


ExportEvent = ExportStarted | Exported


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    selected: SelectedRecords
    limit: int | None = None
    observer: Observer[ExportEvent] = ignore

    def batches(self, shape: RecordShape = AS_CONSUMED) -> Iterator[pa.RecordBatch]:
        """By partition and offset."""
        ranges = [*self.selected.selection.resolve(self.selected.archive)]
        self.observer(ExportStarted(offsets=sum(range_.end_offset - range_.start_offset for range_ in ranges)))
        left, before, written = self.limit, 0, 0
        for offsets in ranges:
            stream = self.selected.read(offsets, shape)
            for matching, read_to in stream:
                chosen = matching.slice(0, left)
                if left is not None:
                    left -= chosen.num_rows
                written += chosen.num_rows
                if chosen.num_rows:
                    yield chosen
                self.observer(Exported(offsets=before + read_to - offsets.start_offset, records=written))
                if left == 0:
                    stream.close()
                    return
            before += offsets.end_offset - offsets.start_offset


def records(archive: TopicArchive, selection: Selection) -> Iterator[pa.RecordBatch]:
    """With the schema RECORDS, by partition and offset."""
    for batch in Export(selected=SelectedRecords.of(archive, selection)).batches():
        yield batch.select(RECORDS.names)


def write_jsonl(archive: TopicArchive, selection: Selection, stream: ByteSink) -> int:
    """Write JSON lines (see `jsonl`) and return the number of records."""
    return export_jsonl(Export(selected=SelectedRecords.of(archive, selection)), stream)


def write_arrow(archive: TopicArchive, selection: Selection, stream: ByteSink) -> int:
    """Write an Arrow IPC stream, whose metadata names the topic; return the number of records."""
    return export_arrow(Export(selected=SelectedRecords.of(archive, selection)), stream)


def export_jsonl(export: Export, stream: ByteSink, *, decoded: bool = False) -> int:
    """`decoded` shows keys and values by their schemas."""
    rows = 0
    topic = export.selected.archive.topic
    for batch in export.batches(AS_DECODED if decoded else AS_CONSUMED):
        stream.writelines(render_decoded(topic, batch) if decoded else render(topic, batch))
        rows += batch.num_rows
    return rows


def export_arrow(export: Export, stream: ByteSink) -> int:
    rows = 0
    schema = RECORDS.with_metadata({"topic": export.selected.archive.topic})
    with pa.ipc.new_stream(stream, schema) as writer:
        for batch in export.batches():
            writer.write_batch(batch.select(RECORDS.names))
            rows += batch.num_rows
    return rows
