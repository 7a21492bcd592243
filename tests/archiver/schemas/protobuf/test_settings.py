"""Schemas that a topic's settings name."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from archiver.config.formats import ProtobufFormat
from archiver.config.model import SchemaRegistrySection
from archiver.errors import BadSchema, ConfigError, SchemaRegistryUnavailable, UnknownSubject
from archiver.schemas import FORMATS, SchemaPlace
from archiver.schemas.registry.envelope import EnvelopeReader
from archiver.schemas.registry.subjects import NOTHING, Subjects
from catalog.registry.last_known import KnownSchemas
from tests.support.schemas.fake_registry import FakeRegistry
from tests.support.schemas.proto_text import compile_text
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
    schema = FORMATS.source_schema(settings, SchemaPlace(topic="orders", part="value", subjects=Subjects(section)))
    assert schema is not None
    assert schema.message == message


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
    schema_place = SchemaPlace(topic="orders", part="value", subjects=Subjects(SchemaRegistrySection(url=registry.url)))
    schema = FORMATS.source_schema(settings, schema_place)
    assert schema is not None
    assert schema.messages == ("shop.Order", "shop.Money")
    missing = settings.model_copy(update={"messages": ("shop.Order", "shop.Nope"), "subject_strategy": "topic_name"})
    with pytest.raises((BadSchema, UnknownSubject)):
        FORMATS.source_schema(missing, schema_place)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"messages": ["a.A"], "wire_format": "plain"}, "nothing in a record says which of them it is"),
        ({"messages": ["a.A"], "message": "a.A"}, "either `message` or `messages`"),
        ({"messages": ["a.A", "a.A"]}, "names a message twice"),
        ({"messages": ["a.A"], "coerce": True}, "`coerce` needs one `message`"),
        ({"coerce": True, "wire_format": "plain", "message": "a.A", "proto": "a.proto"}, "`coerce` goes with"),
        ({"proto": "a.proto"}, "give no `proto`"),
        ({"descriptors": "a.binpb"}, "give the ids that `descriptors` replaces"),
        ({"descriptors": {"x": "a.binpb"}}, "'x' is neither a schema's id nor a GUID"),
        ({"descriptors": {"7": 3}}, "3 is not a path in quotes"),
        (
            {"descriptors": {"7": "a"}, "wire_format": "plain", "message": "a.A"},
            "`descriptors` with schema ids goes with",
        ),
    ],
)
def test_formats_that_cannot_be(keys: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ProtobufFormat.model_validate({"format": "protobuf", "wire_format": "confluent", **keys})


@dataclass
class Descriptors:
    folder: Path

    def __call__(self, **texts: str) -> ProtobufFormat:
        files = {}
        for name, text in texts.items():
            source = compile_text(text, imports={"shop_money.proto": MONEY})
            (self.folder / f"{name}.binpb").write_bytes(source.descriptor_set)
            files[name.strip("_")] = f"{name}.binpb"
        settings = {"format": "protobuf", "wire_format": "confluent", "descriptors": files}
        return ProtobufFormat.model_validate(settings).anchored(self.folder)


@pytest.fixture
def descriptors(tmp_path: Path) -> Descriptors:
    return Descriptors(tmp_path)


def opened(
    registry: FakeRegistry, settings: ProtobufFormat, known: KnownSchemas = NOTHING, **more: object
) -> tuple[tuple[str, ...], EnvelopeReader, Subjects]:
    subjects = Subjects(SchemaRegistrySection.model_validate({"url": registry.url, **more}), known)
    orders = SchemaPlace(topic="orders", part="value", subjects=subjects)
    schema = FORMATS.source_schema(settings, orders)
    reader = FORMATS.envelope_reader(settings, schema, orders)
    assert schema is not None
    assert reader is not None
    return schema.messages, pickle.loads(pickle.dumps(reader)), subjects


def read(reader: EnvelopeReader, number: int, indexes: bytes = b"\0") -> list[str]:
    envelopes = reader.read(pa.array([b"\0" + number.to_bytes(4, "big") + indexes], pa.binary()), None)
    return list(envelopes.errors)


REPAIRED = 'syntax = "proto3"; import "shop_money.proto"; message Zero {} message M { shop.Money price = 1; }'


def test_descriptors_replace_only_their_ids(registry: FakeRegistry, descriptors: Descriptors) -> None:
    good = 'syntax = "proto3"; message M { int32 a = 1; }'
    broken = registry.register("orders-value", 'syntax = "proto3"; message M { Nope price = 1; }')
    registry.register("orders-value", good)
    deleted = broken + 1000
    settings = descriptors(**{f"_{broken}": REPAIRED, f"_{deleted}": REPAIRED})
    messages, reader, _ = opened(registry, settings)
    assert messages == ("M",)
    assert read(reader, broken) == ["other_message@5"]
    assert [read(reader, number, b"\2\2") for number in (broken, deleted)] == [[], []]
    assert read(reader, broken + 1) == []
    assert read(reader, deleted + 1) == ["unknown_schema_id@1"]
    _, unreplaced, _ = opened(registry, settings.model_copy(update={"descriptors": None}))
    assert read(unreplaced, broken, b"\2\2") == ["bad_schema@1"]


def test_a_replaced_latest_schema_is_not_cached(registry: FakeRegistry, descriptors: Descriptors) -> None:
    number = registry.register("orders-value", 'syntax = "proto3"; message M { Nope price = 1; }')
    settings = descriptors(**{f"_{number}": REPAIRED}).model_copy(update={"message": "M"})
    messages, _, subjects = opened(registry, settings)
    assert messages == ("M",)
    registry.down = True
    remembered = subjects.news
    messages, reader, _ = opened(registry, settings, remembered)
    assert (messages, read(reader, number, b"\2\2")) == (("M",), [])
    with pytest.raises(SchemaRegistryUnavailable):
        opened(registry, settings.model_copy(update={"descriptors": None}), remembered)
    registry.down = False
    registry.register("orders-value", 'syntax = "proto3"; message M { int32 a = 1; }')
    _, reader, _ = opened(registry, settings.model_copy(update={"descriptors": None}), remembered, latest_ttl="1s")
    assert read(reader, number, b"\2\2") == ["bad_schema@1"]


def test_descriptors_that_cannot_be_read(registry: FakeRegistry, tmp_path: Path) -> None:
    (tmp_path / "a.binpb").write_bytes(b"no descriptors")
    for key, error in (("7", "no FileDescriptorSet"), ("8", "no such schema file")):
        files = {key: str(tmp_path / {"7": "a.binpb", "8": "gone"}[key])}
        settings = ProtobufFormat.model_validate(
            {"format": "protobuf", "wire_format": "confluent", "descriptors": files}
        )
        with pytest.raises(ConfigError, match=error):
            opened(registry, settings)


def test_a_coerced_message_knows_its_envelope(registry: FakeRegistry) -> None:
    number = order(registry)
    schema_place = SchemaPlace(topic="orders", part="value", subjects=Subjects(SchemaRegistrySection(url=registry.url)))

    def envelope(message: str) -> bytes | None:
        settings = {"format": "protobuf", "wire_format": "confluent", "coerce": True, "message": message}
        schema = FORMATS.source_schema(ProtobufFormat.model_validate(settings), schema_place)
        return schema and schema.envelope

    assert envelope("shop.Order.Line") == b"\0" + number.to_bytes(4, "big") + b"\x04\0\0"
    with pytest.raises(BadSchema, match="only imports it"):
        envelope("shop.Money")
