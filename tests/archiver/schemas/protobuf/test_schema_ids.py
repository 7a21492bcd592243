"""Schema ids in tasks."""

from __future__ import annotations

import pickle

import pytest

from archiver.config.model import SchemaRegistrySection
from archiver.errors import BadSchema, SchemaRegistryUnavailable, UnknownSubject
from archiver.schemas.protobuf.registered_schema import PROTOBUF_SCHEMAS
from archiver.schemas.protobuf.schema_ids import SchemaRegistryIds
from archiver.schemas.registry.client import client_of
from archiver.schemas.registry.ids import RegistryIds
from archiver.schemas.registry.settings import SchemaRegistrySettings
from archiver.schemas.registry.subjects import Subjects
from catalog.model import SchemaIdentity
from catalog.registry.last_known import KnownSchemas
from tests.support.schemas.fake_registry import FakeRegistry
from tests.support.schemas.shop_schemas import order


def ids_of(registry: FakeRegistry) -> SchemaRegistryIds:
    settings = SchemaRegistrySettings(urls=(registry.url,))
    return SchemaRegistryIds(registry=RegistryIds(settings=settings, kind=PROTOBUF_SCHEMAS))


def ids_from(subjects: Subjects) -> SchemaRegistryIds:
    registry = subjects.ids("orders-value", PROTOBUF_SCHEMAS)
    return SchemaRegistryIds(registry=registry).with_schemas(subjects.schemas)


def test_ids_travel(registry: FakeRegistry) -> None:
    number = order(registry)
    ids = pickle.loads(pickle.dumps(ids_of(registry)))
    assert ids.messages(number, (1,)) == {"shop.Other"}
    assert ids.messages(number, (9,)) == frozenset()
    assert ids.messages(1, (0,)) is None


def test_ids_learn(registry: FakeRegistry) -> None:
    number = order(registry)
    ids = ids_of(registry)
    assert ids.messages(number, (1,)) == {"shop.Other"}
    news = ids.learned({number})
    assert news.keys() == {SchemaIdentity(number)}
    client_of.cache_clear()
    asked = len(registry.asked)
    informed = pickle.loads(pickle.dumps(ids.with_schemas(news)))
    assert informed.messages(number, (1,)) == {"shop.Other"}
    assert informed.learned({number}) == {}
    assert len(registry.asked) == asked


def test_what_was_said_stands_in_for_a_registry_that_is_down(registry: FakeRegistry) -> None:
    number = order(registry)
    section = SchemaRegistrySection(url=registry.url, timeout="100ms")
    first = Subjects(section)
    before = first.latest("orders-value", PROTOBUF_SCHEMAS)
    assert before.id == number
    assert first.news.subjects == {"orders-value": SchemaIdentity(number)}
    remembered = KnownSchemas(schemas=first.news.schemas, subjects=first.news.subjects)
    assert Subjects(section, remembered).news == KnownSchemas()
    client_of.cache_clear()
    registry.down = True
    again = Subjects(section, remembered)
    schema = again.latest("orders-value", PROTOBUF_SCHEMAS)
    assert (schema.id, schema.source("shop.Order")) == (number, before.source("shop.Order"))
    assert isinstance(again.down, SchemaRegistryUnavailable)
    assert again.news == KnownSchemas()
    assert ids_from(again).messages(number, (0, 0)) == {"shop.Order.Line", "shop.Order.BeforeEntry"}
    with pytest.raises(SchemaRegistryUnavailable, match="nothing is known yet of the topic's schema"):
        again.latest("others-value", PROTOBUF_SCHEMAS)
    with pytest.raises(SchemaRegistryUnavailable):
        ids_from(again).messages(7, (0,))


def test_a_deleted_subject_goes_on_with_its_latest_known_schema(registry: FakeRegistry) -> None:
    number = order(registry)
    section = SchemaRegistrySection(url=registry.url)
    first = Subjects(section)
    first.latest("orders-value", PROTOBUF_SCHEMAS)
    registry.register("orders-value", "message M {}")
    registry.delete("orders-value")
    again = Subjects(section, first.news)
    assert again.latest("orders-value", PROTOBUF_SCHEMAS).id == number
    assert isinstance(again.down, UnknownSubject)
    assert "the subject was deleted in the schema registry" in str(again.down)
    assert again.down.context["schema_id"] == number
    assert again.news == KnownSchemas()
    assert ids_from(again).messages(number, (1,)) == {"shop.Other"}


def test_the_latest_schema_of_a_subject_that_was_deleted_before(registry: FakeRegistry) -> None:
    order(registry)
    latest = order(registry)
    registry.delete("orders-value")
    subjects = Subjects(SchemaRegistrySection(url=registry.url))
    assert subjects.latest("orders-value", PROTOBUF_SCHEMAS).id == latest
    assert isinstance(subjects.down, UnknownSubject)
    assert subjects.news.subjects == {"orders-value": SchemaIdentity(latest)}


def test_a_latest_schema_whose_reference_is_gone(registry: FakeRegistry) -> None:
    registry.register("part", 'syntax = "proto3"; package p; message P { string a = 1; }')
    text = 'syntax = "proto3"; package w; import "part.proto"; message W%s { p.P p = 1; }'
    number = registry.register("orders-value", text % "", [("part.proto", "part", 1)])
    section = SchemaRegistrySection(url=registry.url)
    first = Subjects(section)
    before = first.latest("orders-value", PROTOBUF_SCHEMAS)
    registry.destroy("part")
    client_of.cache_clear()
    again = Subjects(section, first.news)
    assert again.latest("orders-value", PROTOBUF_SCHEMAS).source("w.W") == before.source("w.W")
    assert isinstance(again.down, BadSchema)
    assert "a schema refers to one that the schema registry doesn't have" in again.down.message
    assert again.down.context["schema_id"] == number
    client_of.cache_clear()
    with pytest.raises(BadSchema, match="the schema registry doesn't have"):
        Subjects(section).latest("orders-value", PROTOBUF_SCHEMAS)
    registry.register("orders-value", text % "2", [("part.proto", "part", 1)])
    client_of.cache_clear()
    with pytest.raises(BadSchema, match="the schema registry doesn't have"):
        Subjects(section, first.news).latest("orders-value", PROTOBUF_SCHEMAS)


@pytest.mark.parametrize("status", [None, 400, 404])
def test_a_subject_that_never_was(registry: FakeRegistry, status: int | None) -> None:
    if status is not None:
        registry.refuses["deleted"] = status
    with pytest.raises(UnknownSubject, match="no such subject"):
        Subjects(SchemaRegistrySection(url=registry.url)).latest("orders-value", PROTOBUF_SCHEMAS)
