"""The schemas that a topic's settings name: subjects by strategy, several messages, envelopes to add."""

from __future__ import annotations

import pytest

from archiver.config.formats import ProtobufFormat
from archiver.config.model import SchemaRegistrySection
from archiver.errors import BadSchema, UnknownSubject
from archiver.schemas import FORMATS, SchemaPlace
from archiver.schemas.registry.subjects import Subjects
from tests.support.schemas.fake_registry import FakeRegistry
from tests.support.schemas.shop_schemas import MONEY, ORDER, UNIT, order


@pytest.mark.parametrize(
    ("keys", "subject", "message"),
    [
        ({}, "orders-value", "shop.Order"),
        ({"message": "shop.Other"}, "orders-value", "shop.Other"),
        ({"subject": "mine"}, "mine", "shop.Order"),
        ({"subject_strategy": "record_name", "message": "shop.Order"}, "shop.Order", "shop.Order"),
        ({"subject_strategy": "topic_record_name", "message": "shop.Order"}, "orders-shop.Order", "shop.Order"),
    ],
)
def test_subjects_by_strategy(registry: FakeRegistry, keys: dict[str, str], subject: str, message: str) -> None:
    registry.register("money", MONEY)
    registry.register("unit", UNIT, [("shop/money.proto", "money", 1)])
    registry.register(subject, ORDER, [("shop/unit.proto", "unit", 1)])
    settings = ProtobufFormat.model_validate({"format": "protobuf", "wire_format": "confluent", **keys})
    section = SchemaRegistrySection(url=registry.url)
    found = FORMATS.source_schema(settings, SchemaPlace(topic="orders", part="value", subjects=Subjects(section)))
    assert found is not None
    assert found.message == message


MANY = {"messages": ["shop.Order", "shop.Money"]}


@pytest.mark.parametrize(
    ("keys", "subjects"),
    [
        (MANY, ("orders-value", "orders-value")),
        ({**MANY, "subject_strategy": "record_name"}, ("shop.Order", "shop.Money")),
        ({**MANY, "subject_strategy": "topic_record_name"}, ("orders-shop.Order", "orders-shop.Money")),
        ({**MANY, "subject": "mine"}, ("mine", "mine")),
    ],
)
def test_subjects_of_several_messages(
    registry: FakeRegistry, keys: dict[str, object], subjects: tuple[str, str]
) -> None:
    registry.register("money", MONEY)
    registry.register("unit", UNIT, [("shop/money.proto", "money", 1)])
    registry.register(subjects[1], MONEY)
    registry.register(subjects[0], ORDER, [("shop/unit.proto", "unit", 1)])
    settings = ProtobufFormat.model_validate({"format": "protobuf", "wire_format": "confluent", **keys})
    place = SchemaPlace(topic="orders", part="value", subjects=Subjects(SchemaRegistrySection(url=registry.url)))
    found = FORMATS.source_schema(settings, place)
    assert found is not None
    assert found.messages == ("shop.Order", "shop.Money")
    missing = settings.model_copy(update={"messages": ("shop.Order", "shop.Nope"), "subject_strategy": "topic_name"})
    with pytest.raises((BadSchema, UnknownSubject)):
        FORMATS.source_schema(missing, place)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"messages": ["a.A"], "wire_format": "plain"}, "nothing in a record says which of them it is"),
        ({"messages": ["a.A"], "message": "a.A"}, "either `message` or `messages`"),
        ({"messages": ["a.A", "a.A"]}, "names a message twice"),
        ({"messages": ["a.A"], "coerce": True}, "`coerce` needs one `message`"),
        ({"coerce": True, "wire_format": "plain", "message": "a.A", "proto": "a.proto"}, "`coerce` goes with"),
    ],
)
def test_formats_that_cannot_be(keys: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ProtobufFormat.model_validate({"format": "protobuf", "wire_format": "confluent", **keys})


def test_a_coerced_message_knows_its_envelope(registry: FakeRegistry) -> None:
    number = order(registry)
    place = SchemaPlace(topic="orders", part="value", subjects=Subjects(SchemaRegistrySection(url=registry.url)))

    def envelope(message: str) -> bytes | None:
        settings = {"format": "protobuf", "wire_format": "confluent", "coerce": True, "message": message}
        found = FORMATS.source_schema(ProtobufFormat.model_validate(settings), place)
        return found and found.envelope

    assert envelope("shop.Order.Line") == b"\0" + number.to_bytes(4, "big") + b"\x04\0\0"
    with pytest.raises(BadSchema, match="only imports it"):
        envelope("shop.Money")
