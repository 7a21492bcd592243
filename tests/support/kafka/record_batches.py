"""Batches by kafka-python's and aiokafka's builders, and patched bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cramjam
import google_crc32c
import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder
from kafka.record.util import encode_varint

from archiver.wire import DecodedBatches

HEADER = struct.Struct(">qiibIhiqqqhii")
BUILDERS = {"kafka-python": KafkaPythonBuilder, "aiokafka": AioBuilder}
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BUILDER_CODECS = [
    *(("kafka-python", codec) for codec in ("none", "gzip", "zstd")),
    *(("aiokafka", codec) for codec in CODECS),
]


@dataclass(frozen=True, slots=True)
class Record:
    timestamp: int = 1_700_000_000_000
    key: bytes | None = b"key"
    value: bytes | None = b"value"
    headers: tuple[tuple[str, bytes | None], ...] = field(default=())


TIMES = st.integers(-(1 << 61), (1 << 61) - 1)
BYTES = st.none() | st.binary(max_size=300)
RECORDS = st.builds(
    Record,
    timestamp=TIMES,
    key=BYTES,
    value=BYTES,
    headers=st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=4).map(tuple),
)
"""Any record that the builders take."""


def build(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: str = "none",
    builder: str = "kafka-python",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    deltas: Sequence[int] | None = None,
    **changes: Any,
) -> bytes:
    made = BUILDERS[builder](
        magic=2,
        compression_type=CODECS[codec],
        is_transactional=transactional,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        batch_size=1 << 30,
    )
    for position, record in enumerate(records):
        delta = position if deltas is None else deltas[position]
        assert made.append(delta, record.timestamp, record.key, record.value, list(record.headers)) is not None
    return patched(bytes(made.build()), base_offset=base_offset, **changes)


def patched(
    batch: bytes,
    *,
    base_offset: int | None = None,
    leader_epoch: int | None = None,
    max_timestamp: int | None = None,
    base_timestamp: int | None = None,
    last_delta: int | None = None,
    count: int | None = None,
    producer_id: int | None = None,
    attributes: int = 0,
    payload: bytes | None = None,
) -> bytes:
    fields = list(HEADER.unpack_from(batch))
    rest = batch[HEADER.size :] if payload is None else payload
    places = {
        0: base_offset,
        2: leader_epoch,
        6: last_delta,
        7: base_timestamp,
        8: max_timestamp,
        9: producer_id,
        12: count,
    }
    for position, value in places.items():
        if value is not None:
            fields[position] = value
    fields[1] = HEADER.size + len(rest) - 12
    fields[5] |= attributes
    body = HEADER.pack(*fields) + rest
    fields[4] = google_crc32c.value(bytes(body[21:]))
    return HEADER.pack(*fields) + rest


def varint(value: int) -> bytes:
    out = bytearray()
    encode_varint(value, out.append)
    return bytes(out)


def raw_record(
    *,
    delta: int = 0,
    time_delta: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Sequence[tuple[bytes, bytes | None]] = (),
) -> bytes:
    def sized(octets: bytes | None) -> bytes:
        return varint(-1) if octets is None else varint(len(octets)) + octets

    body = b"\0" + varint(time_delta) + varint(delta) + sized(key) + sized(value) + varint(len(headers))
    body += b"".join(sized(name) + sized(text) for name, text in headers)
    return varint(len(body)) + body


def raw_batch(records: Sequence[bytes], **changes: Any) -> bytes:
    template = build([Record(timestamp=0)])
    changes = {"last_delta": max(len(records) - 1, 0), "count": len(records)} | changes
    return patched(template, payload=b"".join(records), **changes)


def marker(*, base_offset: int, producer_id: int, commit: bool) -> bytes:
    record = raw_record(key=struct.pack(">hh", 0, int(commit)), value=struct.pack(">hi", 0, 0))
    return raw_batch([record], base_offset=base_offset, producer_id=producer_id, attributes=0b110000)


def compressed(batch: bytes, codec: int, payload: bytes) -> bytes:
    return patched(batch, payload=payload, attributes=codec)


def xerial(data: bytes, *, block: int = 1000) -> bytes:
    out = bytearray(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1))
    for at in range(0, len(data), block):
        piece = bytes(cramjam.snappy.compress_raw(data[at : at + block]))
        out += struct.pack(">i", len(piece)) + piece
    return bytes(out)


def offsets(decoded: DecodedBatches) -> list[int]:
    return decoded.records.column("offset").to_pylist()


def headers_of(decoded: DecodedBatches) -> list[list[tuple[bytes, bytes | None]]]:
    return headers_of_rows(decoded.records)


def headers_of_rows(records: pa.RecordBatch) -> list[list[tuple[bytes, bytes | None]]]:
    return [[(pair["key"], pair["value"]) for pair in row] for row in records.column("headers").to_pylist()]
