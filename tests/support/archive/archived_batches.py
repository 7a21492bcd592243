"""A log archived in a folder, and its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from archiver.archive.batches import ArchivedBatches, BatchCursor, FetchedBatches
from archiver.files.records import Batches
from archiver.files.translate import Translator
from archiver.ingest.kafka_log.grouping import records_of
from archiver.wire import AbortedTransaction, DecodeLimits, decode_batches
from schema_mapping import RawMapping, RowMapping
from tests.support.archive.lake import DAY, Lake
from tests.support.kafka.record_batches import HEADER

ROWS = RowMapping(key=RawMapping(raw_id=100), value=RawMapping(raw_id=101), schema_version=1)
INGESTED = DAY * 86_400_000
HEADER_FIELDS = (
    "base_offset",
    "length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
)


class KnownRows:
    def row_mapping(self, version: int) -> RowMapping:
        assert version == ROWS.schema_version
        return ROWS


def archived(folder: Path, log: bytes, *, end: int, aborted: Sequence[AbortedTransaction] = (), files: int = 1) -> Lake:
    lake = Lake(folder, ROWS)
    archive_more(lake, log, start=0, end=end, aborted=aborted, files=files)
    return lake


def archive_more(
    lake: Lake, log: bytes, *, start: int, end: int, aborted: Sequence[AbortedTransaction] = (), files: int = 1
) -> None:
    limits = DecodeLimits(chunk=(1 << 30) - 1)
    decoded = decode_batches(log, start_offset=start, end_offset=end, aborted=aborted, limits=limits)
    assert decoded.consumed == len(log)
    translator = Translator(ROWS, topic="orders", partition=0, on_parse_error="halt")
    index = decoded.batches
    step = max(1, len(index) // files)
    for first in range(0, len(index), step):
        part = slice(first, first + step)
        batches = Batches(
            first_offset=index.base_offset[part],
            last_offset=index.last_offset[part],
            rows=index.rows[part],
            times=np.full(len(index.rows[part]), INGESTED, np.int64),
        )
        sent = decoded.records.slice(int(index.first_row[first]), int(index.rows[part].sum()))
        records = records_of(sent, batches, start_offset=start)
        (translated,) = translator.translate(records)
        lake.add(ROWS, translated.rows, start, records.end_offset)
        start = records.end_offset
    if start < end:
        lake.add(ROWS, None, start, end)


def fetches(source: ArchivedBatches, max_bytes: int, *, start: int = 0, **options: Any) -> Iterator[FetchedBatches]:
    cursor = BatchCursor(partition=0, offset=start)
    while True:
        result = source.fetch(cursor, max_bytes, **options)
        if result.cursor.offset < result.end:
            assert result.cursor.offset > cursor.offset, "no client may be stuck"
        yield result
        cursor = result.cursor
        if cursor.offset >= result.end:
            return


def data_of(found: FetchedBatches) -> bytes:
    return b"".join(map(bytes, found.parts))


def split(data: bytes) -> list[bytes]:
    result = []
    while data:
        size = HEADER.unpack_from(data)[1] + 12
        result.append(data[:size])
        data = data[size:]
    return result


def header_of(batch: bytes) -> dict[str, int]:
    return dict(zip(HEADER_FIELDS, HEADER.unpack_from(batch), strict=True))


def records_in(data: bytes) -> pa.RecordBatch:
    return decode_batches(data, start_offset=0, end_offset=1 << 62).records
