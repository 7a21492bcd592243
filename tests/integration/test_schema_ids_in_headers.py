"""Schema ids or GUIDs in headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from google.protobuf import message_factory
from google.protobuf.message import Message

from archiver.config import load_config
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.schemas.registry.client import client_of
from archiver.upkeep.reprocess.job import Reprocess
from schema_mapping.protobuf.descriptors import find_descriptor
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.fake_registry import FakeRegistry, fake_registry
from tests.support.schemas.proto_text import compile_text
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

FORMAT = {"format": "protobuf", "wire_format": "confluent"}
TEXT = 'syntax = "proto3"; package s; message A { int32 a = 1; message N { int32 n = 1; } } message B { int32 b = 1; }'
ALL = ["s.A", "s.A.N", "s.B"]
VALUE, KEY = "__value_schema_id", "__key_schema_id"


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry


def run(config: Path) -> JobReport:
    client_of.cache_clear()  # as another process would, knowing nothing
    return ArchiveJob(load_config(config), engine=InlineEngine()).run_once()


def rows(stack: Stack, config: Path, topic: str) -> list[dict[str, Any]]:
    archived = stack.catalog().load_table(load_config(config).topic(topic).table).scan().to_arrow().to_pylist()
    return sorted(archived, key=lambda row: row["kafka"]["offset"])


def made(name: str, number: int) -> Message:
    message = message_factory.GetMessageClass(find_descriptor(compile_text(TEXT, name)))()
    setattr(message, message.DESCRIPTOR.fields[0].name, number)
    return message


def by_id(number: int, *indexes: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + (bytes(indexes) or b"\0")


def by_guid(guid: UUID, *indexes: int) -> bytes:
    return b"\1" + guid.bytes + (bytes(indexes) or b"\0")


BODY = b"\x08\x07"
"""Field 1 is 7: any of the messages."""


def test_headers_of_keys_and_values(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    number = registry.register(f"{topic}-value", TEXT)
    registry.register(f"{topic}-key", TEXT)
    guid = registry.guid(f"{topic}-value")
    config = stack.config(
        {topic: {"value": {**FORMAT, "messages": ALL}, "key": {**FORMAT, "messages": ALL}}},
        schema_registry={"url": registry.url, "timeout": "100ms"},
    )
    stack.produce(
        topic,
        {"value": BODY, "headers": [(VALUE, by_guid(guid))]},
        {"value": BODY, "headers": [(VALUE, by_guid(guid, 2, 2))]},
        {"value": BODY, "headers": [("x", b"y"), (VALUE, by_id(number, 4, 0, 0))]},
        {"value": by_guid(guid, 2, 2) + BODY},
        {"value": by_id(number) + BODY, "headers": [(VALUE, None)]},
        {"key": BODY, "value": BODY, "headers": [(KEY, by_guid(guid, 2, 2)), (VALUE, by_guid(guid))]},
        {"value": BODY, "headers": [(VALUE, by_guid(UUID(int=7))), (VALUE, by_guid(guid, 2, 2))]},
        {"value": by_id(number) + BODY, "headers": [(VALUE, by_guid(UUID(int=7)))]},
        {"value": by_id(number) + BODY, "headers": [(VALUE, by_guid(guid)[:17])]},
        {"value": BODY, "headers": [(VALUE, by_guid(guid, 2, 8))]},
        {"value": None, "headers": [(VALUE, by_guid(guid))]},
    )
    assert run(config).succeeded
    values = [row["val"] for row in rows(stack, config, topic)]
    decoded = [value and (value["a"], value["n"], value["b"], value["__err__"]) for value in values]
    assert decoded == [
        ({"a": 7, "__unrecognized__": None}, None, None, None),
        (None, None, {"b": 7, "__unrecognized__": None}, None),
        (None, {"n": 7, "__unrecognized__": None}, None, None),
        (None, None, {"b": 7, "__unrecognized__": None}, None),
        ({"a": 7, "__unrecognized__": None}, None, None, None),
        ({"a": 7, "__unrecognized__": None}, None, None, None),
        (None, None, {"b": 7, "__unrecognized__": None}, None),
        (None, None, None, "unknown_schema_guid@1"),
        (None, None, None, "bad_header@0"),
        (None, None, None, "other_message@17"),
        None,
    ]
    prefixes = [value and value["__prefix__"] for value in values]
    assert prefixes == [*[None] * 3, by_guid(guid, 2, 2), by_id(number), *[None] * 6]
    assert [value and value["__raw__"] for value in values[7:]] == [by_id(number) + BODY] * 2 + [BODY, None]
    assert rows(stack, config, topic)[5]["key"]["b"]["b"] == 7
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
    registry.down = True  # a GUID that was seen is remembered
    stack.produce(topic, {"value": BODY, "headers": [(VALUE, by_guid(guid, 2, 2))]})
    assert run(config).succeeded
    assert rows(stack, config, topic)[-1]["val"]["b"]["b"] == 7
    registry.down = False


def test_a_coerced_replay_adds_nothing_beside_a_header(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    number = registry.register(f"{topic}-value", TEXT)
    registry.register(f"{topic}-key", TEXT)
    guid = registry.guid(f"{topic}-value")
    format_ = {**FORMAT, "coerce": True}
    config = stack.config({topic: {"value": format_, "key": format_}}, schema_registry={"url": registry.url})
    stack.produce(
        topic,
        {"key": BODY, "value": BODY},
        {"key": BODY, "value": BODY, "headers": [(VALUE, by_guid(guid))]},
        {"key": BODY, "value": BODY, "headers": [(KEY, by_guid(guid))]},
        {"key": BODY, "value": BODY, "headers": [(VALUE, by_id(number)), (KEY, by_guid(guid, 2, 2))]},
        {"value": BODY, "headers": [(VALUE, None)]},
        {"value": BODY, "headers": [(VALUE, b"")]},
        {"value": by_guid(guid) + BODY},
        {"value": b"\x08\0", "headers": [(VALUE, by_guid(guid))]},
        {"value": BODY, "headers": [("apicurio.value.globalId", b"\0\0\0\0\0\0\0\5")]},
    )
    assert run(config).succeeded
    registry.register(f"{topic}-value", TEXT.replace("int32 a = 1;", "int32 a = 1; string more = 2;"))
    stack.produce(topic, {"key": BODY, "value": BODY}, {"value": BODY, "headers": [(VALUE, by_guid(guid))]})
    assert run(config).succeeded
    errors = [(row["val"]["a"], row["val"]["__err__"]) for row in rows(stack, config, topic)]
    assert errors == [
        *[(7, None)] * 5,
        (None, "bad_header@0"),
        (7, None),
        (0, None),
        (None, "foreign_header@0"),
        *[(7, None)] * 2,
    ]
    assert [row["key"] and row["key"]["__err__"] for row in rows(stack, config, topic)[:4]] == [
        *(None, None, None, "other_message@17")
    ]
    sent, coerced = from_kafka(stack, topic, 1), from_archive(config, topic, 1)
    key, value = by_id(number + 1) + BODY, by_id(number) + BODY
    assert [record.key for record in coerced[:4]] == [key, key, BODY, BODY]
    assert [record.value for record in coerced] == [
        *(value, BODY, value, BODY, value, BODY, by_guid(guid) + BODY, b"\x08\0", BODY, by_id(number + 2) + BODY, BODY)
    ]
    assert [record.headers for record in coerced] == [record.headers for record in sent]
    config.write_text(config.read_text().replace('"coerce" = true', '"coerce" = false'))
    assert from_archive(config, topic, 1) == sent


def test_rows_that_were_raw_are_decoded_by_their_headers(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    registry.register(f"{topic}-value", TEXT)
    guid = UUID(int=99)
    config = stack.config({topic: {"value": {**FORMAT, "messages": ALL}}}, schema_registry={"url": registry.url})
    stack.produce(topic, {"value": BODY, "headers": [(VALUE, by_guid(guid, 2, 2))]}, {"value": BODY})
    assert run(config).succeeded
    errors = [row["val"]["__err__"] for row in rows(stack, config, topic)]
    assert errors == ["unknown_schema_guid@1", "bad_envelope@0"]
    registry.register("elsewhere", TEXT, guid=guid)
    client_of.cache_clear()
    report = Reprocess(load_config(config), topic, engine=InlineEngine()).run()
    assert report.succeeded, report.failures
    values = [row["val"] for row in rows(stack, config, topic)]
    assert [(value["b"] and value["b"]["b"], value["__err__"]) for value in values] == [
        *((7, None), (None, "bad_envelope@0"))
    ]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


@dataclass(frozen=True)
class Confluent:
    client: Any

    def serialized(self, topic: str, message: Message, *, key: bool = False) -> tuple[bytes, list[tuple[str, bytes]]]:
        from confluent_kafka.schema_registry import header_schema_id_serializer
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
        from confluent_kafka.serialization import MessageField, SerializationContext

        settings = {"use.deprecated.format": False, "schema.id.serializer": header_schema_id_serializer}
        headers: list[tuple[str, bytes]] = []
        context = SerializationContext(topic, MessageField.KEY if key else MessageField.VALUE, headers)
        written = ProtobufSerializer(type(message), self.client, settings)(message, context)
        assert isinstance(written, bytes)
        return written, headers

    def deserialized(
        self, topic: str, kind: type[Message], value: bytes, headers: Sequence[tuple[str, bytes | None]]
    ) -> Message:
        from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
        from confluent_kafka.serialization import MessageField, SerializationContext

        read = ProtobufDeserializer(kind, {"use.deprecated.format": False}, self.client)
        message = read(value, SerializationContext(topic, MessageField.VALUE, list(headers)))
        assert isinstance(message, Message)
        return message


@pytest.fixture
def confluent() -> Confluent:
    pytest.importorskip("authlib", reason="confluent-kafka's serializers need authlib, httpx, cachetools and attrs")
    from confluent_kafka.schema_registry import SchemaRegistryClient

    return Confluent(SchemaRegistryClient.new_client({"url": "mock://"}))


@pytest.mark.filterwarnings("ignore:.*httpx")  # what authlib says when it is imported
@pytest.mark.parametrize("coerce", [False, True])
def test_confluents_clients_write_and_read_the_records(
    stack: Stack, registry: FakeRegistry, confluent: Confluent, coerce: bool
) -> None:
    topic = stack.topic()
    messages = [made("s.A", 1), made("s.B", 2), made("s.A.N", 3), made("s.A", 0)]
    produced = [confluent.serialized(topic, message) for message in messages]
    registered = confluent.client.get_latest_version(f"{topic}-value")
    registry.register(f"{topic}-value", registered.schema.schema_str, guid=UUID(registered.guid))
    chosen = {"message": "s.A", "coerce": True} if coerce else {"messages": ALL}
    config = stack.config({topic: {"value": {**FORMAT, **chosen}}}, schema_registry={"url": registry.url})
    stack.produce(topic, *({"value": value, "headers": headers} for value, headers in produced))
    assert run(config).succeeded
    values = [row["val"] for row in rows(stack, config, topic)]
    if coerce:
        assert [value["a"] for value in values] == [1, None, None, 0]
        assert [value["__err__"] for value in values] == [None, "other_message@17", "other_message@17", None]
    else:
        names = ["a", "b", "n", "a"]
        assert [value[name][name] for value, name in zip(values, names, strict=True)] == [1, 2, 3, 0]
    replayed = from_archive(config, topic, 1)
    assert replayed == from_kafka(stack, topic, 1)
    for record, sent in zip(replayed, messages, strict=True):
        assert record.value is not None
        assert confluent.deserialized(topic, type(sent), record.value, record.headers) == sent
