"""Lookups in contexts and by GUID."""

from __future__ import annotations

from uuid import UUID

import pytest

from archiver.errors import BadSchema, SchemaRegistryDenied, SchemaRegistryError
from archiver.schemas.protobuf.registered_schema import CompiledSchema
from archiver.schemas.registry.client import SchemasOfKind
from schema_mapping.protobuf.descriptors import find_descriptor
from tests.support.schemas.fake_registry import FakeRegistry
from tests.support.schemas.shop_schemas import client

X = 'syntax = "proto3"; package a; message X { string s = 1; }'
Y = 'syntax = "proto3"; package b; message Y { int64 n = 1; string s = 2; }'
Z = 'syntax = "proto3"; package c; message Z { bool z = 1; }'
SUBJECT = ":.ctx:orders-value"
FIRST = (0,)


def message(found: SchemasOfKind[CompiledSchema], number: int | UUID, subject: str | None) -> set[str] | None:
    schema = found.by_id(number, subject)
    return None if schema is None else set(schema.messages_at(FIRST))


@pytest.fixture
def contexts(registry: FakeRegistry) -> FakeRegistry:
    registry.register("orders-value", X, schema_id=1)
    registry.register(SUBJECT, Y, schema_id=1)
    registry.register(":.other:orders-value", Z, schema_id=1)
    return registry


def test_an_id_counts_within_its_context(contexts: FakeRegistry) -> None:
    registry_client = client(contexts)
    for _ in range(2):
        assert message(registry_client, 1, SUBJECT) == {"b.Y"}
        assert message(registry_client, 1, "orders-value") == {"a.X"}
        assert message(registry_client, 1, ":.other:orders-value") == {"c.Z"}
        assert message(registry_client, 1, None) == {"a.X"}
    assert f"{contexts.asked[0]}".endswith("/schemas/ids/1?subject=%3A.ctx%3Aorders-value")
    assert len(contexts.asked) == 4


@pytest.mark.parametrize(
    ("context", "quoted"),
    [
        (":.team-a.eu:", "%3A.team-a.eu%3A"),
        (":.lkc-1_x:", "%3A.lkc-1_x%3A"),
        (":.a%2Fb:", "%3A.a%252Fb%3A"),
    ],
)
def test_other_names_of_contexts(contexts: FakeRegistry, context: str, quoted: str) -> None:
    contexts.register(f"{context}orders-value", Z, schema_id=1)
    assert message(client(contexts), 1, f"{context}orders-value") == {"c.Z"}
    assert message(client(contexts), 1, SUBJECT) == {"b.Y"}
    assert f"{contexts.asked[0]}".endswith(f"/schemas/ids/1?subject={quoted}orders-value")


@pytest.mark.parametrize(("context", "fields"), [("", {"cents"}), (":.ctx:", {"units", "nanos"})])
def test_references_stay_in_their_context(registry: FakeRegistry, context: str, fields: set[str]) -> None:
    money = 'syntax = "proto3"; package m; message Money {{ {} }}'
    registry.register("money", money.format("int64 cents = 1;"), schema_id=1)
    registry.register(":.ctx:money", money.format("int64 units = 1; int32 nanos = 2;"), schema_id=1)
    order = 'syntax = "proto3"; package s; import "money.proto"; message Order { m.Money price = 1; }'
    registry.register(f"{context}orders-value", order, [("money.proto", "money", 1)], schema_id=2)
    descriptor = find_descriptor(client(registry).latest(f"{context}orders-value").source("s.Order"))
    assert {field.name for field in descriptor.fields_by_name["price"].message_type.fields} == fields


def test_the_context_in_the_url(contexts: FakeRegistry) -> None:
    contexts.url += "/contexts/.ctx"
    assert message(client(contexts), 1, "orders-value") == {"b.Y"}
    assert message(client(contexts), 1, None) == {"b.Y"}
    assert client(contexts).latest("orders-value").messages_at(FIRST) == {"b.Y"}


def test_the_latest_schemas_of_two_contexts_do_not_mix(contexts: FakeRegistry) -> None:
    registry_client = client(contexts)
    assert registry_client.latest(SUBJECT).messages_at(FIRST) == {"b.Y"}
    assert registry_client.latest("orders-value").messages_at(FIRST) == {"a.X"}
    assert message(registry_client, 1, SUBJECT) == {"b.Y"}


def test_an_id_of_another_subject_in_the_same_context(contexts: FakeRegistry) -> None:
    contexts.register(":.ctx:payments-value", Z, schema_id=2)
    contexts.register("payments-value", X, schema_id=3)
    assert message(client(contexts), 2, SUBJECT) == {"c.Z"}
    assert message(client(contexts), 3, "orders-value") == {"a.X"}


def test_an_id_of_the_default_context_means_nothing_in_another(contexts: FakeRegistry) -> None:
    contexts.register("orders-value", X, schema_id=5)
    registry_client = client(contexts)
    assert message(registry_client, 5, SUBJECT) is None
    assert message(registry_client, 5, "orders-value") == {"a.X"}


@pytest.mark.parametrize("subject", ["orders-value", SUBJECT, ":.ctx:orders-key"])
def test_a_registry_without_contexts_ignores_the_subject(registry: FakeRegistry, subject: str) -> None:
    registry.has_contexts = False
    number = registry.register(subject, X)
    elsewhere = registry.register("elsewhere", Z)
    assert message(client(registry), number, subject) == {"a.X"}
    assert message(client(registry), elsewhere, subject) == {"c.Z"}
    assert message(client(registry), 7, subject) is None


@pytest.mark.parametrize("status", [400, 404, 422])
@pytest.mark.parametrize("subject", ["orders-value", SUBJECT])
def test_a_registry_without_contexts_refuses_the_subject(registry: FakeRegistry, subject: str, status: int) -> None:
    registry.has_contexts = False
    registry.refuses["subject"] = status
    number = registry.register(subject, X)
    assert message(client(registry), number, subject) == {"a.X"}
    assert message(client(registry), 7, subject) is None


def test_subject_refused_in_a_context_ends_the_search(contexts: FakeRegistry) -> None:
    contexts.refuses["subject"] = 400
    with pytest.raises(SchemaRegistryError, match="status=400"):
        client(contexts).by_id(1, SUBJECT)


def test_contexts_that_may_not_be_listed_are_contexts(contexts: FakeRegistry) -> None:
    contexts.refuses["contexts"] = 403
    contexts.register("orders-value", X, schema_id=5)
    assert client(contexts).by_id(5, SUBJECT) is None
    contexts.refuses["schemas"] = 403
    with pytest.raises(SchemaRegistryDenied):
        client(contexts).by_id(6, SUBJECT)


def test_references_are_in_the_context_of_their_schema(contexts: FakeRegistry) -> None:
    part = 'syntax = "proto3"; package p; message P { %s a = 1; }'
    whole = 'syntax = "proto3"; package w; import "%s"; message W { p.P p = 1; }'
    contexts.register("part", part % "string")
    contexts.register(":.ctx:part", part % "int64")
    contexts.register(":.ctx:inner", 'syntax = "proto3"; import public "part.proto";', [("part.proto", "part", 1)])
    references = {
        ":.ctx:direct": [("part.proto", "part", 1)],
        ":.ctx:explicit": [("part.proto", ":.ctx:part", 1)],
        ":.ctx:nested": [("inner.proto", "inner", 1)],
        ":.other:across": [("inner.proto", ":.ctx:inner", 1)],
    }
    for subject, named in references.items():
        contexts.register(subject, whole % named[0][0], named)
    registry_client = client(contexts)
    for subject in references:
        file = next(file for file in registry_client.latest(subject).files.file if file.name == "part.proto")
        assert file.message_type[0].field[0].type == file.message_type[0].field[0].TYPE_INT64, subject
    contexts.register(":.other:lost", whole % "part.proto", [("part.proto", "part", 1)])
    with pytest.raises(BadSchema, match=r"doesn't have.*subject='part'"):
        registry_client.latest(":.other:lost")


def test_references_where_a_context_is_only_a_name(registry: FakeRegistry) -> None:
    registry.has_contexts = False
    registry.register("part", 'syntax = "proto3"; package p; message P { string a = 1; }')
    text = 'syntax = "proto3"; package w; import "part.proto"; message W { p.P p = 1; }'
    registry.register(":.ctx:whole", text, [("part.proto", "part", 1)])
    assert client(registry).latest(":.ctx:whole").messages_at(FIRST) == {"w.W"}


@pytest.mark.parametrize("status", [None, 400])
def test_references_that_were_deleted_softly(registry: FakeRegistry, status: int | None) -> None:
    registry.register("part", 'syntax = "proto3"; package p; message P { string a = 1; }')
    text = 'syntax = "proto3"; package w; import "part.proto"; message W { p.P p = 1; }'
    number = registry.register("whole", text, [("part.proto", "part", 1)])
    if status is None:
        registry.delete("part")
        registry.delete("whole")
    else:
        registry.refuses["deleted"] = status
    assert message(client(registry), number, "whole") == {"w.W"}


@pytest.mark.parametrize("subject", [None, "orders-value", SUBJECT])
def test_a_guid_counts_in_all_contexts(contexts: FakeRegistry, subject: str | None) -> None:
    registry_client = client(contexts)
    for _ in range(2):
        assert message(registry_client, contexts.guid(SUBJECT), subject) == {"b.Y"}
        assert message(registry_client, contexts.guid("orders-value"), subject) == {"a.X"}
    assert len(contexts.asked) == 2


def test_a_guid_whose_references_are_in_another_context(contexts: FakeRegistry) -> None:
    contexts.register("part", 'syntax = "proto3"; package p; message P { string a = 1; }')
    text = 'syntax = "proto3"; package w; import "part.proto"; message W { p.P p = 1; }'
    contexts.register("whole", text, [("part.proto", "part", 1)])
    assert message(client(contexts), contexts.guid("whole"), SUBJECT) == {"w.W"}


def test_a_guid_that_is_not_there(registry: FakeRegistry) -> None:
    registry.register("orders-value", '"string"', kind="AVRO")
    assert client(registry).by_id(UUID(int=7)) is None
    assert client(registry).by_id(registry.guid("orders-value")) is None


@pytest.mark.parametrize("status", [None, 405, 501])
def test_a_registry_without_guids(registry: FakeRegistry, status: int | None) -> None:
    registry.has_guids = False
    if status is not None:
        registry.refuses["schemas/guids"] = status
    assert client(registry).by_id(UUID(int=7)) is None


def test_a_url_of_something_else_is_no_unknown_guid(registry: FakeRegistry) -> None:
    registry.refuses["schemas"] = 404
    with pytest.raises(SchemaRegistryError, match="correct the url"):
        client(registry).by_id(UUID(int=7))
