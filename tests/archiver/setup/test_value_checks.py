"""How much of a sample stays raw."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from archiver.config.model import SchemaRegistrySection, TopicConfig
from archiver.schemas import mapping_options
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.setup.findings import CheckOutcome, Finding
from archiver.setup.samples import RecentRecords
from archiver.setup.value_checks import decoded
from archiver.wire import RECORDS
from schema_mapping import LedgerState, RawMapping, assign
from schema_mapping.errors import RowsTooLargeError
from tests.support.schemas.fake_registry import FakeRegistry, fake_registry

TEXT = 'syntax = "proto3"; message M { int32 a = 1; } message N { int32 b = 1; }'


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with fake_registry() as running:
        yield running


def records(*values: bytes | None, partition: int = 0, offset: int = 0) -> RecentRecords:
    columns = {
        "offset": [offset + number for number in range(len(values))],
        "key": [None] * len(values),
        "value": list(values),
        "headers": [[] for _ in values],
    }
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(len(values), field.type)
        for field in RECORDS
    ]
    return RecentRecords(partition=partition, records=pa.RecordBatch.from_arrays(arrays, names=RECORDS.names))


def looked(registry: FakeRegistry, *sampled: RecentRecords) -> Finding:
    value = {"format": "protobuf", "wire_format": "confluent"}
    topic = TopicConfig.model_validate({"name": "orders", "table": "kafka.orders", "value": value})
    schemas = TopicSchemas.read(topic, SchemaRegistrySection(url=registry.url))
    row = assign(LedgerState(), value=schemas.value, options=mapping_options(topic)).row
    return decoded("topic orders", "value", sampled, row.value, schemas.value_envelope)


def enveloped(number: int, body: bytes, indexes: bytes = b"\0") -> bytes:
    return b"\0" + number.to_bytes(4, "big") + indexes + body


def test_all_values_decode(registry: FakeRegistry) -> None:
    number = registry.register("orders-value", TEXT)
    finding = looked(registry, records(enveloped(number, b"\x08\1"), None), records(enveloped(number, b"")))
    assert (finding.outcome, finding.detail) == (CheckOutcome.OK, "all of 2 sampled values decode")
    assert looked(registry, records(None)).detail == "the sample has no values"
    assert looked(registry).detail == "the sample has no values"


class Bounded(RawMapping):
    def decode(self, values: pa.BinaryArray, **_: object) -> pa.StructArray:
        if len(values) > 2:
            raise RowsTooLargeError("too much for one column")
        kept = pa.array(values.to_pylist(), pa.binary())
        errors = pa.array(["truncated@1" if value == b"x" else None for value in values.to_pylist()], pa.string())
        return pa.StructArray.from_arrays([kept, errors], names=["__raw__", "__err__"])


def test_samples_too_large_for_one_column_are_split() -> None:
    values = [b"a", b"b", b"c", b"d", b"x", None, b"e"]
    finding = decoded("topic orders", "value", [records(*values, partition=1, offset=40)], Bounded(raw_id=1), None)
    assert finding.detail.startswith("6 of 6 sampled values would stay raw: 5 because columns can't restore the bytes")
    assert "(first in partition 1 at offset 40); 1 truncated@1" in finding.detail
    assert finding.detail.endswith("(first in partition 1 at offset 44)")


def test_values_that_would_stay_raw_have_reasons(registry: FakeRegistry) -> None:
    number = registry.register("orders-value", TEXT)
    refused = registry.register(
        "other", 'syntax = "proto3"; import "acme/money.proto"; message M { acme.Money m = 1; }'
    )
    finding = looked(
        registry,
        records(enveloped(number, b"\x08\1"), b"text", enveloped(number, b"\x08\1", b"\2\2"), partition=2, offset=10),
        records(enveloped(77, b""), enveloped(refused, b""), enveloped(refused, b""), enveloped(number, b"\xff")),
    )
    assert finding.outcome is CheckOutcome.WARNING
    head, *reasons = finding.detail.split("; ")
    assert head.startswith("6 of 7 sampled values would stay raw: 1 bad_envelope@0: they don't begin with")
    assert "(first in partition 2 at offset 11)" in head
    text = "; ".join(reasons)
    assert (
        f"1 other_message@5: they are of a message that the topic's section doesn't list, such as id {number}" in text
    )
    assert "1 unknown_schema_id@1" in text
    assert "such as id 77" in text
    assert "2 bad_schema@1: protoc refuses the schema" in text
    assert "acme/money.proto: File not found" in text
    assert f"schema_id={refused}" in text
    assert "the bytes are no message of the configured schema (first in partition 0 at offset 3)" in text
