"""The client against a schema registry that others wrote, where ARCHIVER_TEST_SCHEMA_REGISTRY names one.

For Apicurio: `mvn dependency:copy -Dartifact=io.apicurio:apicurio-registry-app:2.6.13.Final:tar.gz:all`, unpack, run
the `*-runner.jar` with `-Dquarkus.http.port=8081`, and set the variable to `http://127.0.0.1:8081/apis/ccompat/v7`.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence

import pytest
import requests

from archiver.errors import UnknownSubject
from archiver.schemas.registry import RegistrySettings, SchemaRegistry
from schema_mapping.descriptors import find_descriptor, parse_descriptor_set
from tests.schema_mapping.proto_text import compile_text
from tests.stack import unique

URL = os.environ.get("ARCHIVER_TEST_SCHEMA_REGISTRY", "")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not URL, reason="ARCHIVER_TEST_SCHEMA_REGISTRY names no schema registry"),
]

MONEY = 'syntax = "proto3"; package shop; message Money { int64 units = 1; }'
ORDER = """syntax = "proto3"; package shop;
import "money.proto";
import "google/protobuf/timestamp.proto";
message Order { Money total = 1; google.protobuf.Timestamp at = 2; message Line { string sku = 1; } }
message Other {}
"""
OLDER = ORDER.replace("google.protobuf.Timestamp at = 2;", "")


@pytest.fixture
def client() -> SchemaRegistry:
    return SchemaRegistry(RegistrySettings(urls=(URL,)))


def register(subject: str, text: str, references: Sequence[tuple[str, str, int]] = ()) -> int:
    named = [dict(zip(("name", "subject", "version"), each, strict=True)) for each in references]
    body = {"schemaType": "PROTOBUF", "schema": text, "references": named}
    answer = requests.post(f"{URL}/subjects/{subject}/versions", json=body, timeout=30)
    answer.raise_for_status()
    return int(answer.json()["id"])


def as_base64(text: str, name: str) -> str:
    files = parse_descriptor_set(compile_text(text, imports={"money.proto": MONEY}).descriptor_set).file
    file = next(each for each in files if each.name == "test.proto")
    file.name = name
    file.ClearField("source_code_info")
    return base64.b64encode(file.SerializeToString()).decode()


@pytest.mark.parametrize("form", ["text", "base64"])
def test_a_schema_with_a_reference(client: SchemaRegistry, form: str) -> None:
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


def test_what_is_not_there(client: SchemaRegistry) -> None:
    assert client.by_id(2_000_000_000) is None
    with pytest.raises(UnknownSubject):
        client.latest(unique("nowhere"))
