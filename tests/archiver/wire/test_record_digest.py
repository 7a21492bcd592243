"""The kernel's digest, by docs/digest.md."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest

from archiver.archive.records import RECORDS as SEEN
from archiver.wire import decode_batches
from archiver.wire.digest import murmur3_x64_128
from archiver.wire.record_digest import RecordDigest
from catalog.digests import DIGEST_ALGORITHM, add_digests
from tests.support.kafka.record_batches import Record, build
from tests.support.kafka.record_digest import SeenRecord, digest, encoding

DIGEST_DOC = Path(__file__).parents[3] / "docs" / "digest.md"
VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "record_digest.json").read_text())
RECORDS = VECTORS["records"]


def octets(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def record_of(vector: dict[str, Any]) -> SeenRecord:
    plain = [vector[name] for name in ("partition", "offset", "timestamp_type", "timestamp")]
    headers = [(bytes.fromhex(name), octets(text)) for name, text in vector["headers"]]
    return SeenRecord(*plain, octets(vector["key"]), octets(vector["value"]), headers)


def batch_of(*records: SeenRecord) -> pa.RecordBatch:
    rows = [
        record._asdict() | {"headers": [{"key": name, "value": text} for name, text in record.headers]}
        for record in records
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SEEN)


def test_all_vectors_are_there():
    assert len(RECORDS) == 9
    assert VECTORS["algorithm"] == DIGEST_ALGORITHM


@pytest.mark.parametrize("vector", RECORDS)
def test_a_record_has_the_published_digest(vector: dict[str, Any]):
    record = record_of(vector)
    assert RecordDigest.of_seen(batch_of(record)).text == vector["digest"] == digest([record])
    assert encoding(record).hex() == vector["encoding"]
    assert f"{murmur3_x64_128(bytes.fromhex(vector['encoding'])):032x}" == vector["digest"]


def test_the_sum_is_the_published_one():
    batch = batch_of(*map(record_of, RECORDS))
    assert RecordDigest.of_seen(batch).text == VECTORS["sum"] == add_digests(value["digest"] for value in RECORDS)


def test_the_documentation_shows_the_vectors():
    text = DIGEST_DOC.read_text()
    assert DIGEST_ALGORITHM in text
    assert VECTORS["sum"] in text
    assert [value["digest"] in text for value in RECORDS] == [True] * len(RECORDS)


@pytest.mark.parametrize("size", [*range(65), 1 << 16, (1 << 16) + 7])
def test_the_hash_is_murmur3(size: int):
    data = np.random.default_rng(size).bytes(size)
    assert murmur3_x64_128(data) == mmh3.hash128(data, seed=0, x64arch=True, signed=False)


def test_nothing_adds_nothing():
    assert RecordDigest.of_seen(batch_of()) == RecordDigest()
    assert RecordDigest().text == "0" * 32 == add_digests([])


def test_an_unknown_digest_makes_the_sum_unknown():
    assert add_digests(["0" * 31 + "1", None]) is None
    assert add_digests(["f" * 32, "0" * 31 + "2"]) == "0" * 31 + "1"


def test_append_time_is_what_a_consumer_sees():
    records = [Record(timestamp=5, key=None), Record(timestamp=9, headers=(("h", None),))]
    batch = build(records, base_offset=7, attributes=0b1000, max_timestamp=1234)
    fetched = decode_batches(batch, start_offset=7, end_offset=9).records
    seen = [
        SeenRecord(3, 7, 1, 1234, None, b"value", ()),
        SeenRecord(3, 8, 1, 1234, b"key", b"value", [(b"h", None)]),
    ]
    assert RecordDigest.of_fetched(fetched, partition=3).text == digest(seen)


def null_timestamp(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(3, "timestamp", pa.array([None] * batch.num_rows, pa.int64()))


def large_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(5, "value", batch.column("value").cast(pa.large_binary()))


def other_headers(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(6, "headers", pa.array([[b"a"]] * batch.num_rows))


def null_headers(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(6, "headers", pa.array([None] * batch.num_rows, SEEN.field("headers").type))


@pytest.mark.parametrize("spoil", [null_timestamp, large_values, other_headers, null_headers])
def test_columns_that_hold_no_records_are_refused(spoil: Callable[[pa.RecordBatch], pa.RecordBatch]):
    with pytest.raises(ValueError, match="expected"):
        RecordDigest.of_seen(spoil(batch_of(*map(record_of, RECORDS))))


@pytest.mark.parametrize("ends", [[0, 100, 5, 5], [0, 5, 1, 5], [0, -4, 2, 5]])
def test_offsets_outside_the_bytes_are_refused(ends: list[int]):
    buffers = [None, pa.py_buffer(np.array(ends, np.int32)), pa.py_buffer(b"0123456789")]
    bad = pa.Array.from_buffers(pa.binary(), 3, buffers)
    batch = batch_of(*map(record_of, RECORDS[:3]))
    with pytest.raises(ValueError, match="outside its bytes"):
        RecordDigest.of_seen(batch.set_column(4, "key", bad))
