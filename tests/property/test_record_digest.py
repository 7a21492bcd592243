"""The digest of records."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any

import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

from archiver.archive.records import RECORDS as SEEN
from archiver.wire import decode_batches
from archiver.wire.record_digest import RecordDigest
from catalog.digests import add_digests
from tests.support.kafka.record_batches import BUILDER_CODECS, Record, build
from tests.support.kafka.record_batches import RECORDS as PRODUCED
from tests.support.kafka.record_digest import SeenRecord, digest, encoding

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
BYTES = st.none() | st.binary(max_size=3) | st.binary(max_size=70)
HEADERS = st.lists(st.tuples(st.binary(max_size=20), BYTES), max_size=4).map(tuple)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "partition": INT32,
    "offset": INT64,
    "timestamp_type": st.sampled_from([-1, 0, 1]),
    "timestamp": INT64,
    "key": BYTES,
    "value": BYTES,
    "headers": HEADERS,
}
SEEN_RECORDS = st.builds(SeenRecord, **FIELDS)


def batch_of(records: list[SeenRecord]) -> pa.RecordBatch:
    rows = [
        record._asdict() | {"headers": [{"key": name, "value": text} for name, text in record.headers]}
        for record in records
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SEEN)


def parsed(octets: bytes) -> SeenRecord:
    """Decode a record; so no two share an encoding."""
    source = BytesIO(octets)

    def numbers(layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, source.read(struct.calcsize(layout)))

    def text(length: int) -> bytes | None:
        return None if length == -1 else source.read(length)

    partition, timestamp_type, offset, timestamp, key_length, value_length = numbers("<iiqqii")
    key, value = text(key_length), text(value_length)
    headers = []
    for _ in range(*numbers("<i")):
        name_length, value_length = numbers("<ii")
        headers.append((source.read(name_length), text(value_length)))
    assert not source.read()
    return SeenRecord(partition, offset, timestamp_type, timestamp, key, value, tuple(headers))


def of(*records: SeenRecord) -> str:
    return RecordDigest.of_seen(batch_of(list(records))).text


@given(st.lists(SEEN_RECORDS, max_size=20))
def test_it_is_the_sum_that_the_documentation_defines(records: list[SeenRecord]):
    assert of(*records) == digest(records)


@given(st.lists(SEEN_RECORDS, max_size=12), st.randoms(use_true_random=False), st.data())
def test_order_and_cuts_do_not_matter(records: list[SeenRecord], noise: Any, data: st.DataObject):
    whole = of(*records)
    shuffled = list(records)
    noise.shuffle(shuffled)
    assert of(*shuffled) == whole
    cut = data.draw(st.integers(0, len(records)))
    batch = batch_of(records)
    parts = [RecordDigest.of_seen(part) for part in (batch.slice(0, cut), batch.slice(cut))]
    assert (parts[0] + parts[1]).text == whole == add_digests(part.text for part in parts)
    assert parts[1].text == digest(records[cut:])


@given(SEEN_RECORDS, st.sampled_from(sorted(FIELDS)), st.data())
def test_every_field_matters(record: SeenRecord, field: str, data: st.DataObject):
    changed = record._replace(**{field: data.draw(FIELDS[field])})
    assume(changed != record)
    assert encoding(changed) != encoding(record)
    assert of(changed) != of(record)


@given(SEEN_RECORDS)
def test_a_record_can_be_read_from_its_encoding(record: SeenRecord):
    assert parsed(encoding(record)) == record


@given(SEEN_RECORDS)
def test_null_is_not_empty_and_a_duplicate_counts(record: SeenRecord):
    payloads = [record._replace(key=key, value=value) for key in (None, b"") for value in (None, b"")]
    header_lists = ((), ((b"a", None),), ((b"a", b""),), ((b"a", None),) * 2)
    assert len({of(payload) for payload in payloads}) == len(payloads)
    assert len({of(record._replace(headers=headers)) for headers in header_lists}) == len(header_lists)
    assert of(record, record) != of(record)


@given(SEEN_RECORDS, st.binary(max_size=5), st.binary(max_size=5))
def test_the_order_of_headers_matters(record: SeenRecord, first: bytes, second: bytes):
    assume(first != second)
    headers = ((b"a", first), (b"a", second))
    assert of(record._replace(headers=headers)) != of(record._replace(headers=headers[::-1]))


@given(
    st.lists(PRODUCED, min_size=1, max_size=20), st.sampled_from(BUILDER_CODECS), st.integers(0, 1 << 60), st.booleans()
)
def test_both_sides_agree(records: list[Record], writer: tuple[str, str], base_offset: int, append_time: bool):
    builder, codec = writer
    changes = {"attributes": 0b1000, "max_timestamp": 1_234} if append_time else {}
    batch = build(records, base_offset=base_offset, builder=builder, codec=codec, **changes)
    fetched = decode_batches(batch, start_offset=base_offset, end_offset=base_offset + 1).records
    seen = [
        SeenRecord(
            5,
            base_offset + position,
            int(append_time),
            1_234 if append_time else record.timestamp,
            record.key,
            record.value,
            [(name.encode(), text) for name, text in record.headers],
        )
        for position, record in enumerate(records)
    ]
    assert RecordDigest.of_fetched(fetched, partition=5).text == digest(seen) == of(*seen)
    tail = RecordDigest.of_fetched(fetched.slice(len(records) // 2), partition=5)
    assert tail.text == digest(seen[len(records) // 2 :])
