"""Avro topics from files and registries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from archiver.config.formats import AvroFormat
from archiver.config.model import SchemaRegistrySection, TopicConfig
from archiver.errors import BadSchema, ConfigError, NewerSchema
from archiver.schemas import TopicSchemas, decode_values
from archiver.schemas.avro.registered_schema import AVRO_SCHEMAS, WriterSchema
from archiver.schemas.avro.settings import AVRO_SETTINGS
from archiver.schemas.format_settings import ProposedFile
from archiver.schemas.registry.schema_kind import RegisteredSchema
from catalog.registry.last_known import KnownSchemas
from schema_mapping import LedgerState, assign
from schema_mapping.avro.schema import AvroSchema
from tests.support.schemas.fake_registry import FakeRegistry, fake_registry
from tests.support.schemas.strategies_avro import written

REGISTERED = {"format": "avro", "wire_format": "confluent"}
SUBJECT = "orders-value"


def record(*fields: tuple[str, Any], name: str = "shop.Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields]}


ONE = record(("id", "long"))
TWO = record(("id", "long"), ("name", ["null", "string"]))


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry


def topic(**value: Any) -> TopicConfig:
    return TopicConfig.model_validate({"name": "orders", "table": "kafka.orders", "value": value})


def opened(server: FakeRegistry, remembered: KnownSchemas | None = None, **more: Any) -> TopicSchemas:
    section = SchemaRegistrySection(url=server.url)
    return TopicSchemas.read(topic(**REGISTERED, **more), section, *([remembered] if remembered else []))


def rows_of(schemas: TopicSchemas, values: list[bytes | None], headers: pa.ListArray | None = None) -> pa.StructArray:
    mapping = assign(LedgerState(), value=schemas.value).row.value
    seen: set[Any] = set()
    rows = decode_values(mapping, pa.array(values, pa.binary()), schemas.value_envelope, headers=headers, seen=seen)
    assert mapping.encode(rows).to_pylist() == values
    return rows


def enveloped(schema_id: int, schema: Any, value: Any) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + written(schema, value)


def test_values_of_all_versions_are_columns(server: FakeRegistry) -> None:
    old = server.register(SUBJECT, json.dumps(ONE), kind="AVRO")
    new = server.register(SUBJECT, json.dumps(TWO), kind=None)
    schemas = opened(server)
    values = [enveloped(new, TWO, {"id": 1, "name": "a"}), enveloped(old, ONE, {"id": 2}), None]
    rows = rows_of(schemas, values)
    assert rows.field("id").to_pylist() == [1, 2, None]
    assert rows.field("name").to_pylist() == ["a", None, None]
    assert rows.field("__form__").to_pylist() == [None, "writer_1", None]
    assert rows.field("__raw__").null_count == rows.field("__err__").null_count == 3
    assert rows.field("__prefix__").to_pylist() == [values[0][:5], values[1][:5], None]  # type: ignore[index]


def test_guids_and_headers_name_the_writer(server: FakeRegistry) -> None:
    server.register(SUBJECT, json.dumps(ONE), kind="AVRO")
    guid = server.guid(SUBJECT)
    new = server.register(SUBJECT, json.dumps(TWO), kind="AVRO")
    schemas = opened(server)
    kind = pa.list_(pa.struct([pa.field("key", pa.binary()), pa.field("value", pa.binary())]))
    header = {"key": b"__value_schema_id", "value": b"\0" + new.to_bytes(4, "big")}
    values = [b"\1" + guid.bytes + written(ONE, {"id": 1}), written(TWO, {"id": 2, "name": "b"})]
    rows = rows_of(schemas, values, pa.array([[], [header]], kind))
    assert rows.field("id").to_pylist() == [1, 2]
    assert rows.field("__prefix__").to_pylist() == [values[0][:17], None]
    assert rows.field("__raw__").null_count == 2


def test_references_are_taken_in(server: FakeRegistry) -> None:
    server.register("leaf", json.dumps({"type": "fixed", "name": "shop.Leaf", "size": 2}), kind="AVRO")
    server.register(
        "inner", json.dumps(record(("leaf", "shop.Leaf"), name="shop.Inner")), [("shop.Leaf", "leaf", 1)], kind="AVRO"
    )
    text = json.dumps(record(("inner", "shop.Inner")))
    number = server.register(SUBJECT, text, [("shop.Inner", "inner", 1)], kind="AVRO")
    rows = rows_of(opened(server), [b"\0" + number.to_bytes(4, "big") + b"ab"])
    assert rows.field("inner")[0].as_py()["leaf"] == b"ab"


def test_newer_schema_waits_for_the_next_opening(server: FakeRegistry) -> None:
    server.register(SUBJECT, json.dumps(ONE), kind="AVRO")
    schemas = opened(server)
    new = server.register(SUBJECT, json.dumps(TWO), kind="AVRO")
    value = enveloped(new, TWO, {"id": 1, "name": "a"})
    with pytest.raises(NewerSchema, match="the next run opens the topic") as caught:
        rows_of(schemas, [value])
    assert caught.value.retryable
    assert caught.value.context["schema_id"] == new
    assert rows_of(opened(server), [value]).field("name").to_pylist() == ["a"]


def test_schema_that_means_the_same_needs_no_opening(server: FakeRegistry) -> None:
    server.register(SUBJECT, json.dumps(ONE), kind="AVRO")
    schemas = opened(server)
    same = server.register("orders-copy-value", json.dumps({**ONE, "doc": "the same"}), kind="AVRO")
    rows = rows_of(schemas, [enveloped(same, ONE, {"id": 5})])
    assert rows.field("id").to_pylist() == [5]


def test_unknown_and_other_schemas_have_a_code(server: FakeRegistry) -> None:
    server.register(SUBJECT, json.dumps(ONE), kind="AVRO")
    other_id = server.register("another", json.dumps(TWO), kind="AVRO")
    bad = server.register("bad", '{"type": "recor"}', kind="AVRO")
    protobuf = server.register("protobuf", 'syntax = "proto3";', kind="PROTOBUF")
    heads = [b"\0" + number.to_bytes(4, "big") for number in (other_id, bad, protobuf, 99)]
    rows = rows_of(opened(server), [*(head + b"\2" for head in heads), b"\2", b"", b"\5abcdefgh"])
    assert rows.field("__err__").to_pylist() == [
        "other_schema@1",
        "bad_schema@1",
        "unknown_schema_id@1",
        "unknown_schema_id@1",
        "bad_envelope@0",
        "bad_envelope@0",
        "bad_envelope@0",
    ]


def test_last_known_schemas_are_used_while_the_registry_is_down(server: FakeRegistry) -> None:
    old = server.register(SUBJECT, json.dumps(ONE), kind="AVRO")
    new = server.register(SUBJECT, json.dumps(TWO), kind="AVRO")
    before = opened(server)
    server.down = True
    after = opened(server, before.news)
    assert after.schema_registry_down is not None
    assert after.value == before.value
    values = [enveloped(new, TWO, {"id": 1, "name": "a"}), enveloped(old, ONE, {"id": 2})]
    assert rows_of(after, values).field("id").to_pylist() == [1, 2]


def test_deleted_and_broken_versions_are_no_obstacle(server: FakeRegistry) -> None:
    old = server.register(SUBJECT, json.dumps(ONE), kind="AVRO")
    server.register(SUBJECT, '{"type": "recor"}', kind="AVRO")
    server.register(SUBJECT, json.dumps(TWO), kind="AVRO")
    server.delete(SUBJECT, 1)
    rows = rows_of(opened(server), [enveloped(old, ONE, {"id": 5})])
    assert rows.field("id").to_pylist() == [5]


@pytest.mark.parametrize(
    ("settings", "subject"),
    [
        ({}, "orders-value"),
        ({"subject": "sales"}, "sales"),
        ({"subject_strategy": "record_name", "message": "shop.Order"}, "shop.Order"),
        ({"subject_strategy": "topic_record_name", "message": "shop.Order"}, "orders-shop.Order"),
    ],
    ids=str,
)
def test_subject_is_as_configured(server: FakeRegistry, settings: dict[str, Any], subject: str) -> None:
    server.register(subject, json.dumps(ONE), kind="AVRO")
    assert opened(server, **settings).value == AvroSchema.of(json.dumps(ONE))


def test_registered_schema_is_kept_as_bytes() -> None:
    schema = AVRO_SCHEMAS.read(RegisteredSchema(id=7, text=json.dumps(ONE), references={}))
    assert AVRO_SCHEMAS.from_bytes(7, schema.to_bytes()) == schema == WriterSchema(id=7, text=json.dumps(ONE))
    assert AVRO_SCHEMAS.from_bytes(7, b"\x0a\x02") is None
    with pytest.raises(BadSchema, match="schema_id=8"):
        AVRO_SCHEMAS.read(RegisteredSchema(id=8, text="{", references={}))


def test_schema_file_and_the_files_it_uses(tmp_path: Path) -> None:
    leaf, order = tmp_path / "leaf.avsc", tmp_path / "order.avsc"
    leaf.write_text(json.dumps({"type": "fixed", "name": "shop.Leaf", "size": 2}))
    order.write_text(json.dumps(record(("leaf", "shop.Leaf"))))
    settings = AvroFormat.model_validate({"format": "avro", "schema": ["order.avsc", "leaf.avsc"]}).anchored(tmp_path)
    schemas = TopicSchemas.read(topic(format="avro", schema=[str(order), str(leaf)]))
    assert schemas.value == AVRO_SETTINGS.source_schema(settings, None)  # type: ignore[arg-type]
    assert schemas.value_envelope is None
    assert rows_of(schemas, [b"ab"]).field("leaf").to_pylist() == [b"ab"]


@pytest.mark.parametrize(
    ("content", "message"), [(None, "no such schema file"), ("{", "isn't JSON"), ('"x.Y"', "nor its references define")]
)
def test_bad_schema_files_are_named(tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / "order.avsc"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=message) as caught:
        TopicSchemas.check(topic(format="avro", schema=str(file)))
    assert caught.value.context["file"] == str(file)
    assert caught.value.context["topic"] == "orders"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "give `schema`"),
        ({"schema": "a.avsc", "wire_format": "confluent"}, "give no `schema`"),
        ({"schema": "a.avsc", "subject": "s"}, "go with wire_format"),
        ({"wire_format": "confluent", "subject_strategy": "record_name"}, "needs `message`"),
        ({"wire_format": "confluent", "message": "shop.Order"}, "names the record of a `subject_strategy`"),
    ],
    ids=str,
)
def test_contradicting_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AvroFormat.model_validate({"format": "avro", **settings})


def test_proposed_file_becomes_the_newest_writer(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text(json.dumps(TWO))
    today = AvroSchema.of(json.dumps(ONE), envelope=b"e")
    proposed = AVRO_SETTINGS.next_schema(ProposedFile(path=file, topic="orders", today=today), None)
    assert proposed == AvroSchema.of(json.dumps(TWO), json.dumps(ONE), envelope=b"e")
    assert AVRO_SETTINGS.next_schema(ProposedFile(path=file), None) == AvroSchema.of(json.dumps(TWO))
