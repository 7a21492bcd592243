"""JSON topics from files and registries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from archiver.config.formats import JsonFormat
from archiver.config.model import SchemaRegistrySection, TopicConfig
from archiver.errors import BadSchema, ConfigError, UnknownSubject
from archiver.schemas import TopicSchemas, decode_values
from archiver.schemas.format_settings import ProposedFile
from archiver.schemas.formats import FORMATS
from archiver.schemas.json.registered_schema import JSON_SCHEMAS
from archiver.schemas.json.settings import JSON_SETTINGS
from archiver.schemas.registry.schema_kind import RegisteredSchema
from archiver.setup.findings import CheckOutcome
from archiver.setup.samples import RecentRecords
from archiver.setup.value_checks import decoded
from archiver.wire import RECORDS
from catalog.registry.last_known import KnownSchemas
from schema_mapping import LedgerState, assign
from schema_mapping.avro.schema import AvroSchema
from schema_mapping.json.schema import JsonSchema
from schema_mapping.value_format import ValueMapping
from tests.support.schemas.fake_registry import FakeRegistry, fake_registry

REGISTERED = {"format": "json", "wire_format": "confluent"}
SUBJECT = "orders-value"


def record(**types: Any) -> dict[str, Any]:
    return {"title": "Order", "type": "object", "properties": {name: {"type": kind} for name, kind in types.items()}}


ONE = record(id="integer")
TWO = record(id="integer", name="string")


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry


def topic(**value: Any) -> TopicConfig:
    return TopicConfig.model_validate({"name": "orders", "table": "kafka.orders", "value": value})


def opened(server: FakeRegistry, remembered: KnownSchemas | None = None, **more: Any) -> TopicSchemas:
    section = SchemaRegistrySection(url=server.url)
    return TopicSchemas.read(topic(**REGISTERED, **more), section, *([remembered] if remembered else []))


def mapping_of(schemas: TopicSchemas) -> ValueMapping:
    return assign(LedgerState(), value=schemas.value).row.value


def rows_of(schemas: TopicSchemas, values: list[bytes | None], headers: pa.ListArray | None = None) -> pa.StructArray:
    mapping = mapping_of(schemas)
    seen: set[Any] = set()
    rows = decode_values(mapping, pa.array(values, pa.binary()), schemas.value_envelope, headers=headers, seen=seen)
    assert mapping.encode(rows).to_pylist() == values
    return rows


def enveloped(schema_id: int, body: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + body


def test_latest_schema_decides_the_columns_of_all_values(server: FakeRegistry) -> None:
    old = server.register(SUBJECT, json.dumps(ONE), kind="JSON")
    new = server.register(SUBJECT, json.dumps(TWO), kind="JSON")
    values = [enveloped(new, b'{"id":1,"name":"a"}'), enveloped(old, b'{"id":2}'), None, enveloped(new, b'{"x":1}')]
    rows = rows_of(opened(server), values)
    assert rows.field("id").to_pylist() == [1, 2, None, None]
    assert rows.field("name").to_pylist() == ["a", None, None, None]
    assert rows.field("__unrecognized__").to_pylist() == [None, None, None, b'{"x":1}']
    assert rows.field("__raw__").null_count == rows.field("__err__").null_count == 4
    assert rows.field("__prefix__").to_pylist() == [value and value[:5] for value in values]


def test_newer_schema_needs_no_opening(server: FakeRegistry) -> None:
    server.register(SUBJECT, json.dumps(ONE), kind="JSON")
    schemas = opened(server)
    new = server.register(SUBJECT, json.dumps(TWO), kind="JSON")
    rows = rows_of(schemas, [enveloped(new, b'{"id":1,"name":"a"}')])
    assert rows.field("id").to_pylist() == [1]
    assert rows.field("__unrecognized__").to_pylist() == [b'{"name":"a"}']


def test_guids_and_headers_name_schemas(server: FakeRegistry) -> None:
    number = server.register(SUBJECT, json.dumps(ONE), kind="JSON")
    guid = server.guid(SUBJECT)
    kind = pa.list_(pa.struct([pa.field("key", pa.binary()), pa.field("value", pa.binary())]))
    header = {"key": b"__value_schema_id", "value": b"\0" + number.to_bytes(4, "big")}
    values: list[bytes | None] = [b"\1" + guid.bytes + b'{"id":1}', b'{"id":2}', b""]
    rows = rows_of(opened(server), values, pa.array([[], [header], [header]], kind))
    assert rows.field("id").to_pylist() == [1, 2, None]
    assert rows.field("__prefix__").to_pylist() == [b"\1" + guid.bytes, None, None]
    assert rows.field("__err__").to_pylist() == [None, None, "truncated@0"]


def test_references_are_taken_in(server: FakeRegistry) -> None:
    server.register("leaf", json.dumps({"type": "string"}), kind="JSON")
    inner = {"type": "object", "properties": {"leaf": {"$ref": "leaf.json"}}}
    server.register("inner", json.dumps(inner), [("leaf.json", "leaf", 1)], kind="JSON")
    text = json.dumps({"type": "object", "properties": {"inner": {"$ref": "inner.json"}}})
    number = server.register(SUBJECT, text, [("inner.json", "inner", 1)], kind="JSON")
    rows = rows_of(opened(server), [enveloped(number, b'{"inner":{"leaf":"ab"}}')])
    assert rows.field("inner")[0].as_py()["leaf"] == "ab"


def test_errors_have_a_code_and_the_offset_in_the_value(server: FakeRegistry) -> None:
    number = server.register(SUBJECT, json.dumps(ONE), kind="JSON")
    protobuf = server.register("protobuf", 'syntax = "proto3";', kind="PROTOBUF")
    bad = server.register("bad", "{", kind="JSON")
    values: list[bytes | None] = [
        enveloped(99, b'{"id":1}'),
        enveloped(protobuf, b'{"id":1}'),
        enveloped(bad, b'{"id":1}'),
        b'{"id":1}',
        b"",
        b"\0\0",
        enveloped(number, b""),
        enveloped(number, b'{"id":"1"}'),
        enveloped(number, b'{"id":NaN}'),
        enveloped(number, b'{"id":1}x'),
        enveloped(number, b'{"\xff":1}'),
    ]
    assert rows_of(opened(server), values).field("__err__").to_pylist() == [
        "unknown_schema_id@1",
        "unknown_schema_id@1",
        "bad_schema@1",
        "bad_envelope@0",
        "bad_envelope@0",
        "bad_envelope@0",
        "truncated@5",
        "other_type@11",
        "bad_json@11",
        "bad_json@13",
        "bad_utf8@7",
    ]


def test_last_known_schema_is_used_while_the_registry_is_down(server: FakeRegistry) -> None:
    number = server.register(SUBJECT, json.dumps(TWO), kind="JSON")
    before = opened(server)
    server.down = True
    after = opened(server, before.news)
    assert after.schema_registry_down is not None
    assert after.value == before.value
    assert rows_of(after, [enveloped(number, b'{"id":1}')]).field("id").to_pylist() == [1]


def test_unknown_subject_is_named(server: FakeRegistry) -> None:
    with pytest.raises(UnknownSubject, match="orders-value"):
        opened(server)
    server.register("sales", json.dumps(ONE), kind="JSON")
    assert opened(server, subject="sales").value == JsonSchema.of(json.dumps(ONE))


def test_registered_schema_is_kept_as_bytes() -> None:
    schema = JSON_SCHEMAS.read(RegisteredSchema(id=7, text=json.dumps(ONE), references={}))
    assert JSON_SCHEMAS.from_bytes(7, schema.to_bytes()) == schema
    assert JSON_SCHEMAS.from_bytes(7, b"\x0a\x02") is None
    with pytest.raises(BadSchema, match="schema_id=8"):
        JSON_SCHEMAS.read(RegisteredSchema(id=8, text="{", references={}))


def test_schema_file_and_the_files_it_refers_to(tmp_path: Path) -> None:
    leaf, order = tmp_path / "leaf.json", tmp_path / "order.json"
    leaf.write_text('{"type": "string"}')
    order.write_text(json.dumps({"type": "object", "properties": {"leaf": {"$ref": "leaf.json"}}}))
    settings = JsonFormat.model_validate({"format": "json", "schema": ["order.json", "leaf.json"]}).anchored(tmp_path)
    schemas = TopicSchemas.read(topic(format="json", schema=[str(order), str(leaf)]))
    assert schemas.value == JSON_SETTINGS.source_schema(settings, None)  # type: ignore[arg-type]
    assert schemas.value_envelope is None
    assert rows_of(schemas, [b'{"leaf":"ab"}']).field("leaf").to_pylist() == ["ab"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such schema file"),
        (b"{", "isn't JSON"),
        (b"[]", "neither an object nor true or false"),
        (b'{"$ref": "other.json"}', "a document that isn't there"),
        (b'{"$ref": "#/definitions/x"}', "has no target"),
        (b'{"title": "\xff"}', "cannot be read"),
    ],
)
def test_bad_schema_files_are_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "order.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        TopicSchemas.check(topic(format="json", schema=str(file)))
    assert caught.value.context["file"] == str(file)
    assert caught.value.context["topic"] == "orders"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "give `schema`"),
        ({"schema": "a.json", "wire_format": "confluent"}, "give no `schema`"),
        ({"schema": "a.json", "subject": "s"}, "goes with wire_format"),
        ({"schema": "a.json", "max_depth": 29}, "less than or equal"),
    ],
    ids=str,
)
def test_contradicting_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JsonFormat.model_validate({"format": "json", **settings})


def test_proposed_file_is_the_next_schema(tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text(json.dumps(TWO))
    today = JsonSchema.of(json.dumps(ONE))
    expected = JsonSchema.of(json.dumps(TWO))
    assert JSON_SETTINGS.next_schema(ProposedFile(path=file, topic="orders", today=today), None) == expected
    assert FORMATS.next_schema(ProposedFile(path=file)) == expected
    avro = AvroSchema.of('"long"')
    with pytest.raises(ConfigError, match=r"aren't JSON.*topic='orders'"):
        JSON_SETTINGS.next_schema(ProposedFile(path=file, topic="orders", today=avro), None)


def test_sampled_values_that_would_stay_raw_have_reasons(server: FakeRegistry) -> None:
    number = server.register(SUBJECT, json.dumps(ONE), kind="JSON")
    schemas = opened(server)
    values = [enveloped(number, body) for body in (b'{"id":1}', b"{", b'{"id":1,"id":2}', b'{"id":"1"}')]
    columns = {"offset": [10, 11, 12, 13], "value": values, "headers": [[] for _ in values]}
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(len(values), field.type)
        for field in RECORDS
    ]
    sampled = [RecentRecords(partition=2, records=pa.RecordBatch.from_arrays(arrays, names=RECORDS.names))]
    finding = decoded("topic orders", "value", sampled, mapping_of(schemas), schemas.value_envelope)
    assert finding.outcome is CheckOutcome.WARNING
    assert finding.detail == (
        "3 of 4 sampled values would stay raw: "
        "1 truncated@6: the bytes are no message of the configured schema (first in partition 2 at offset 11); "
        "1 because columns can't restore the bytes (first in partition 2 at offset 12); "
        "1 other_type@11: they, or a part of them, are of another type than the JSON Schema says"
        " (first in partition 2 at offset 13)"
    )
