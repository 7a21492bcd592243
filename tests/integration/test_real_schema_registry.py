"""Apicurio with confluent-kafka's serializer, if installed.

ARCHIVER_TEST_SCHEMA_REGISTRY may be another registry's url.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import pytest
import requests
from google.protobuf import message_factory
from google.protobuf.message import Message

from archiver.config import load_config
from archiver.errors import UnknownSubject
from archiver.schemas.protobuf.registered_schema import CompiledSchema
from archiver.schemas.registry.client import SchemasOfKind, client_of
from schema_mapping.protobuf.descriptors import find_descriptor, parse_descriptor_set
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.proto_text import compile_text
from tests.support.schemas.shop_schemas import client_of_urls
from tests.support.servers.stack import Stack, unique

Schemas: TypeAlias = SchemasOfKind[CompiledSchema]

pytestmark = pytest.mark.integration

MONEY = 'syntax = "proto3"; package shop; message Money { int64 units = 1; }'
ORDER = """syntax = "proto3"; package shop;
import "money.proto";
import "google/protobuf/timestamp.proto";
message Order { Money total = 1; google.protobuf.Timestamp at = 2; message Line { string sku = 1; } }
message Other {}
"""
OLDER = ORDER.replace("google.protobuf.Timestamp at = 2;", "")
FORMAT = {"format": "protobuf", "wire_format": "confluent"}


@pytest.fixture
def client(schema_registry: str) -> Schemas:
    return client_of_urls((schema_registry,), pause=0.25)


Register = Callable[..., int]


@pytest.fixture
def register(schema_registry: str) -> Register:
    def register(subject: str, text: str, references: Sequence[tuple[str, str, int]] = ()) -> int:
        named = [dict(zip(("name", "subject", "version"), reference, strict=True)) for reference in references]
        body = {"schemaType": "PROTOBUF", "schema": text, "references": named}
        answer = requests.post(f"{schema_registry}/subjects/{subject}/versions", json=body, timeout=30)
        answer.raise_for_status()
        return int(answer.json()["id"])

    return register


def as_base64(text: str, name: str) -> str:
    files = parse_descriptor_set(compile_text(text, imports={"money.proto": MONEY}).descriptor_set).file
    file = next(file for file in files if file.name == "test.proto")
    file.name = name
    file.ClearField("source_code_info")
    return base64.b64encode(file.SerializeToString()).decode()


def made(message: str, text: str = ORDER) -> Message:
    source = compile_text(text, message, imports={"money.proto": MONEY})
    return message_factory.GetMessageClass(find_descriptor(source))()


def rows(stack: Stack, config: Path, topic: str) -> list[dict[str, Any]]:
    archived = stack.catalog().load_table(load_config(config).topic(topic).table).scan().to_arrow().to_pylist()
    return [row["val"] for row in sorted(archived, key=lambda row: row["kafka"]["offset"])]


@pytest.mark.parametrize("form", ["text", "base64"])
def test_a_schema_with_a_reference(client: Schemas, register: Register, form: str) -> None:
    money, orders = unique("money"), unique("orders")
    register(money, MONEY if form == "text" else as_base64(MONEY, "money.proto"))
    references = [("money.proto", money, 1)]
    texts = [text if form == "text" else as_base64(text, "orders.proto") for text in (OLDER, ORDER)]
    older, newer = (register(orders, text, references) for text in texts)
    latest = client.latest(orders)
    assert latest.id == newer
    descriptor = find_descriptor(latest.source("shop.Order"))
    assert [field.name for field in descriptor.fields] == ["total", "at"]
    assert descriptor.fields_by_name["total"].message_type.full_name == "shop.Money"
    assert latest.messages_at((0, 0)) == {"shop.Order.Line"}
    before = client.by_id(older)
    assert before is not None
    assert before.messages_at((1,)) == {"shop.Other"}


def test_what_is_not_there(client: Schemas) -> None:
    assert client.by_id(2_000_000_000) is None
    with pytest.raises(UnknownSubject):
        client.latest(unique("nowhere"))


def test_ids_are_found_with_the_subject_and_without(client: Schemas, register: Register) -> None:
    orders, elsewhere = unique("orders"), unique("elsewhere")
    number, other_id = register(orders, MONEY), register(elsewhere, MONEY.replace("units", "cents"))
    for subject in (None, orders, ":.team:orders"):
        for schema_id in (number, other_id):
            schema = client.by_id(schema_id, subject)
            assert schema is not None
            assert schema.messages_at((0,)) == {"shop.Money"}
        assert client.by_id(2_000_000_000, subject) is None


def test_a_guid_is_unknown_where_there_are_none(client: Schemas) -> None:
    assert client.by_id(UUID(int=7)) is None


def test_ids_of_a_deleted_subject_are_read(client: Schemas, register: Register, schema_registry: str) -> None:
    money, orders = unique("money"), unique("orders")
    register(money, MONEY)
    number = register(orders, ORDER, [("money.proto", money, 1)])
    requests.delete(f"{schema_registry}/subjects/{orders}", timeout=30).raise_for_status()
    with pytest.raises(UnknownSubject):
        client.latest(orders)
    schema = client.by_id(number, orders)
    assert schema is not None
    assert schema.messages_at((0,)) == {"shop.Order"}


def test_deleted_versions_subjects_and_references_are_read(
    stack: Stack, schema_registry: str, register: Register
) -> None:
    """A version that records name is deleted before the first run, and all before the next."""
    topic, money = stack.topic(), unique("money")
    subjects = f"{schema_registry}/subjects"
    register(money, MONEY)
    older, newer = (register(f"{topic}-value", text, [("money.proto", money, 1)]) for text in (OLDER, ORDER))
    value = {**FORMAT, "message": "shop.Order"}
    config = stack.config({topic: {"value": value}}, schema_registry={"url": schema_registry})

    def produce(*ids: int) -> None:
        heads = (b"\0" + number.to_bytes(4, "big") + b"\0" for number in ids)
        stack.produce(topic, *({"value": head + b"\x0a\x02\x08\x05"} for head in heads))

    produce(older, newer)
    requests.delete(f"{subjects}/{topic}-value/versions/1", timeout=30).raise_for_status()
    archive_once(config, topic, engine=InlineEngine())
    requests.delete(f"{subjects}/{topic}-value", timeout=30).raise_for_status()
    refused = requests.codes.unprocessable_entity  # by Karapace, as a deleted schema refers to it
    assert requests.delete(f"{subjects}/{money}", timeout=30).status_code in {requests.codes.ok, refused}
    client_of.cache_clear()
    produce(older, newer)
    archive_once(config, topic, engine=InlineEngine())
    assert [row["total"]["units"] for row in rows(stack, config, topic)] == [5, 5, 5, 5]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


@pytest.mark.parametrize("strategy", ["topic_name", "record_name", "topic_record_name"])
def test_several_types_by_every_strategy(stack: Stack, schema_registry: str, register: Register, strategy: str) -> None:
    topic, package = stack.topic(), unique("shop")
    money, order = (text.replace("shop", package) for text in (MONEY, ORDER))
    references = [("money.proto", unique("money"), 1)]
    register(references[0][1], money)
    subject = {"topic_name": f"{topic}-value", "record_name": f"{package}.Order"}.get(
        strategy, f"{topic}-{package}.Order"
    )
    order_id = register(subject, order, references)
    second = subject if strategy == "topic_name" else subject.replace("Order", "Money")
    money_id = order_id if strategy == "topic_name" else register(second, money)
    value = {**FORMAT, "messages": [f"{package}.Money", f"{package}.Order"], "subject_strategy": strategy}
    config = stack.config({topic: {"value": value}}, schema_registry={"url": schema_registry})
    stack.produce(
        topic,
        {"value": b"\0" + order_id.to_bytes(4, "big") + b"\0" + b"\x0a\x02\x08\x05"},
        {"value": b"\0" + order_id.to_bytes(4, "big") + b"\x02\x02" + b"\x08\x05"},
        {"value": b"\0" + money_id.to_bytes(4, "big") + b"\0" + b"\x08\x07"},
    )
    archive_once(config, topic, engine=InlineEngine())
    archived = rows(stack, config, topic)
    assert archived[0]["order"]["total"]["units"] == 5
    assert archived[1]["__err__"] == "other_message@5"
    if strategy != "topic_name":
        assert archived[2]["money"]["units"] == 7
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


@pytest.fixture
def serialized(schema_registry: str) -> Iterator[Callable[..., bytes]]:
    pytest.importorskip("authlib", reason="confluent-kafka's serializers need authlib, httpx, cachetools and attrs")
    from confluent_kafka.schema_registry import (
        SchemaRegistryClient,
        record_subject_name_strategy,
        topic_record_subject_name_strategy,
        topic_subject_name_strategy,
    )
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    strategies = {
        "topic_name": topic_subject_name_strategy,
        "record_name": record_subject_name_strategy,
        "topic_record_name": topic_record_subject_name_strategy,
    }
    client = SchemaRegistryClient({"url": schema_registry})

    def write(topic: str, message: Message, strategy: str = "topic_name") -> bytes:
        settings = {"subject.name.strategy": strategies[strategy], "use.deprecated.format": False}
        serializer = ProtobufSerializer(type(message), client, settings)
        written = serializer(message, SerializationContext(topic, MessageField.VALUE))
        assert isinstance(written, bytes)
        return written

    with client:
        yield write


@pytest.mark.filterwarnings("ignore:.*httpx:DeprecationWarning")  # what authlib says when it is imported
@pytest.mark.parametrize("strategy", ["topic_name", "record_name", "topic_record_name"])
def test_what_confluents_serializer_writes(
    stack: Stack, schema_registry: str, serialized: Callable[..., bytes], strategy: str
) -> None:
    topic, package = stack.topic(), unique("shop")
    text = ORDER.replace("shop", package).replace("Money total", "int64 total").replace('import "money.proto";', "")
    order, line, foreign = (made(f"{package}.{name}", text) for name in ("Order", "Order.Line", "Other"))
    order.total, line.sku = 9, "x"  # type: ignore[attr-defined]
    order.at.GetCurrentTime()  # type: ignore[attr-defined]
    values = [serialized(topic, message, strategy) for message in (order, line, order, foreign)]
    messages = [f"{package}.Order", f"{package}.Order.Line"]
    value = {**FORMAT, "messages": messages, "subject_strategy": strategy}
    config = stack.config({topic: {"value": value}}, schema_registry={"url": schema_registry})
    stack.produce(topic, *({"value": value} for value in values))
    archive_once(config, topic, engine=InlineEngine())
    archived = rows(stack, config, topic)
    assert [row["order"] and row["order"]["total"] for row in archived] == [9, None, 9, None]
    assert [row["line"] and row["line"]["sku"] for row in archived] == [None, "x", None, None]
    assert [row["__err__"] for row in archived] == [None, None, None, "other_message@5"]
    assert [row["__raw__"] is None for row in archived] == [True, True, True, False]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
