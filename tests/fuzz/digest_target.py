"""Fuzz target: digests of sliced records, against plain Python."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from archiver.archive.records import RECORDS
from archiver.wire.record_digest import RecordDigest
from tests.fuzz.choices import FuzzedChoices
from tests.fuzz.exact import exact_binary, exact_buffer
from tests.support.kafka.record_digest import SeenRecord, digest
from tests.support.schemas.random_choices import SeededChoices

TYPES = (-1, 0, 1)
LENGTHS = (-1, 0, 1, 7, 8, 15, 16, 17, 31, 33, 64, 65, 600)


def check(octets: bytes) -> None:
    choices = FuzzedChoices(octets)
    records = [_record(choices) for _ in range(choices.integer(0, 8))]
    batch = _batch(records)
    whole = RecordDigest.of_seen(batch)
    assert whole.text == digest(records)
    cut = choices.integer(0, len(records))
    parts = [RecordDigest.of_seen(part) for part in (batch.slice(0, cut), batch.slice(cut))]
    assert parts[0] + parts[1] == whole
    assert parts[1].text == digest(records[cut:])


def _record(choices: FuzzedChoices) -> SeenRecord:
    headers = [(_text(choices) or b"", _text(choices)) for _ in range(choices.integer(0, 9))]
    partition, offset, timestamp = (choices.integer(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for bits in (32, 64, 64))
    return SeenRecord(
        partition, offset, TYPES[choices.integer(0, 2)], timestamp, _text(choices), _text(choices), headers
    )


def _text(choices: FuzzedChoices) -> bytes | None:
    length = LENGTHS[choices.integer(0, len(LENGTHS) - 1)]
    return None if length < 0 else choices.data(length)


def _batch(records: list[SeenRecord]) -> pa.RecordBatch:
    pairs = [pair for record in records for pair in record.headers]
    header_list = RECORDS.field("headers").type
    inner = header_list.value_type
    ends = np.cumsum([0, *(len(record.headers) for record in records)], dtype=np.int32)
    headers = pa.Array.from_buffers(
        header_list,
        len(records),
        [None, exact_buffer(ends.tobytes())],
        children=[
            pa.StructArray.from_arrays(
                [exact_binary([name for name, _ in pairs]), exact_binary([text for _, text in pairs])],
                fields=list(inner),
            )
        ],
    )
    columns = {
        "key": exact_binary([record.key for record in records]),
        "value": exact_binary([record.value for record in records]),
        "headers": headers,
    }
    for name in ("partition", "offset", "timestamp_type", "timestamp"):
        columns[name] = pa.array([getattr(record, name) for record in records], RECORDS.field(name).type)
    names = [name for name in RECORDS.names if name in columns]
    schema = pa.schema([RECORDS.field(name) for name in names])
    return pa.RecordBatch.from_arrays([columns[name] for name in names], schema=schema)


def seeds() -> Iterator[bytes]:
    for seed in range(20):
        yield SeededChoices(seed).data(20 * seed)
