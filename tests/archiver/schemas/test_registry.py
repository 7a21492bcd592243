"""The client of a schema registry, over HTTP: text and base64 forms, references, identities, faults."""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Iterator
from importlib import resources

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from archiver.config.model import ProtobufFormat, SchemaRegistrySection
from archiver.errors import (
    BadSchema,
    SchemaRegistryDenied,
    SchemaRegistryError,
    SchemaRegistryUnavailable,
    UnknownSubject,
)
from archiver.schemas import SchemaPlace, source_schema
from archiver.schemas.registered import indexes_of
from archiver.schemas.registry import RegistrySettings, SchemaRegistry, client_of
from archiver.schemas.schema_ids import RegistryIds
from archiver.schemas.subjects import Subjects
from catalog.registered import RememberedSchemas
from schema_mapping import compile_mapping
from schema_mapping.descriptors import find_descriptor
from tests.archiver.schemas.fake_registry import FakeRegistry, basic, fake_registry
from tests.schema_mapping.proto_text import compile_text

MONEY = 'syntax = "proto3"; package shop; message Money { int64 units = 1; }'
UNIT = 'syntax = "proto3"; package shop; import "shop/money.proto"; message Unit { Money price = 1; }'
ORDER = """syntax = "proto3"; package shop;
import "shop/unit.proto";
import "google/protobuf/timestamp.proto";
message Order {
  map<string, int32> before = 1;
  Unit unit = 2;
  google.protobuf.Timestamp at = 3;
  message Line { message Part {} }
}
message Other {}
"""


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry


def client(registry: FakeRegistry, **more: object) -> SchemaRegistry:
    return SchemaRegistry(RegistrySettings(urls=(registry.url,), pause=0.001, **more))  # type: ignore[arg-type]


def as_base64(text: str, *, name: str = "default") -> str:
    """What serializers register that send descriptors: the file alone, without its imports."""
    imports = {"shop_money.proto": MONEY}
    files = FileDescriptorSet.FromString(compile_text(text, imports=imports).descriptor_set).file
    file = next(each for each in files if each.name == "test.proto")
    file.name = name
    file.ClearField("source_code_info")
    return base64.b64encode(file.SerializeToString()).decode()


def order(registry: FakeRegistry) -> int:
    registry.register("money", MONEY)
    registry.register("unit", UNIT, [("shop/money.proto", "money", 1)])
    return registry.register("orders-value", ORDER, [("shop/unit.proto", "unit", 1)])


def test_text_with_references_of_references(registry: FakeRegistry) -> None:
    number = order(registry)
    found = client(registry).latest("orders-value")
    assert found.id == number
    descriptor = find_descriptor(found.source("shop.Order"))
    assert descriptor.fields_by_name["unit"].message_type.fields_by_name["price"].message_type.full_name == "shop.Money"


def test_base64_and_text_may_refer_to_each_other(registry: FakeRegistry) -> None:
    registry.register("money", as_base64(MONEY))
    text = 'syntax = "proto3"; import "shop_money.proto"; message M { shop.Money price = 1; }'
    registry.register("texts-value", text, [("shop_money.proto", "money", 1)])
    registry.register("money", MONEY)
    registry.register("bytes-value", as_base64(text), [("shop_money.proto", "money", 2)])
    for subject in ("texts-value", "bytes-value"):
        found = client(registry).latest(subject)
        assert found.messages_at((0,)) == {"M"}
        assert find_descriptor(found.source("M")).fields_by_name["price"].message_type.full_name == "shop.Money"


def test_our_options_need_no_reference_and_may_have_one(registry: FakeRegistry) -> None:
    text = """syntax = "proto2"; package own; import "archiver/options.proto"; message Cart {
      optional int32 a = 1 [(archiver.column).name = "b"]; extensions 5; extend Cart { optional int32 c = 5; } }"""
    shipped = (resources.files("schema_mapping") / "proto" / "archiver" / "options.proto").read_text()
    registry.register("options", shipped)
    registry.register("alone-value", text)
    registry.register("bytes-value", as_base64(text))
    registry.register("referring-value", text, [("archiver/options.proto", "options", 1)])
    for subject in ("alone-value", "bytes-value", "referring-value"):
        source = client(registry).latest(subject).source("own.Cart", ("own.Cart.c",))
        mapping = compile_mapping(find_descriptor(source), extensions=source.extensions)
        assert mapping.arrow_type.names[:2] == ["b", "c"]
    with pytest.raises(BadSchema, match=r"no extension 'own\.d'.*schema_id=") as caught:
        client(registry).latest("alone-value").source("own.Cart", ("own.d",))
    assert not caught.value.retryable


def test_indexes_name_messages_as_java_and_the_others_count(registry: FakeRegistry) -> None:
    found = client(registry).by_id(order(registry))
    assert found is not None
    assert found.messages_at((0,)) == {"shop.Order"}
    assert found.messages_at((1,)) == {"shop.Other"}
    assert found.messages_at((0, 0)) == {"shop.Order.Line", "shop.Order.BeforeEntry"}
    assert found.messages_at((0, 1, 0)) == {"shop.Order.Line.Part"}
    assert found.messages_at((2,)) == found.messages_at((0, 7)) == found.messages_at(()) == frozenset()


def test_an_id_is_asked_for_once(registry: FakeRegistry) -> None:
    number = order(registry)
    one = client(registry)
    assert one.by_id(number) is one.by_id(number) is one.latest("orders-value")
    assert registry.asked.count(f"/apis/ccompat/v7/schemas/ids/{number}") == 1
    assert one.by_id(7) is one.by_id(7) is None
    assert sum("/schemas/ids/7" in path for path in registry.asked) == 1


def test_an_id_that_comes_later_is_found(registry: FakeRegistry) -> None:
    one = client(registry, forget_after=0.0)
    assert one.by_id(100_001) is None
    assert registry.register("s", MONEY) == 100_001
    assert one.by_id(100_001) is not None


@pytest.mark.parametrize("kind", [None, "AVRO", "JSON"])
def test_schemas_that_are_no_protobuf(registry: FakeRegistry, kind: str | None) -> None:
    number = registry.register("s", '"string"', kind=kind)
    assert client(registry).by_id(number) is None
    with pytest.raises(BadSchema, match="not Protobuf"):
        client(registry).latest("s")


def test_what_is_not_there_is_named(registry: FakeRegistry) -> None:
    with pytest.raises(UnknownSubject, match="subject='or ders/value'"):
        client(registry).latest("or ders/value")
    number = registry.register("s", UNIT, [("shop/money.proto", "gone", 3)])
    with pytest.raises(BadSchema, match="subject='gone', version=3"):
        client(registry).by_id(number)
    number = registry.register("s", 'syntax = "proto3"; message M { Nope n = 1; }')
    with pytest.raises(BadSchema, match=r'"Nope" is not defined'):
        client(registry).by_id(number)
    with pytest.raises(BadSchema, match="leaves its folder"):
        client(registry).by_id(registry.register("s", UNIT, [("../money.proto", "s", 2)]))


def test_faults_that_pass_are_waited_out(registry: FakeRegistry) -> None:
    number = order(registry)
    registry.faults[:] = [500, 503, 429]
    assert client(registry).by_id(number) is not None
    registry.faults[:] = [500] * 3
    with pytest.raises(SchemaRegistryUnavailable, match="status=500") as caught:
        client(registry, attempts=3).by_id(number)
    assert caught.value.retryable


def test_nobody_answers(registry: FakeRegistry) -> None:
    nowhere = "http://127.0.0.1:9"
    with pytest.raises(SchemaRegistryUnavailable, match="does not answer"):
        SchemaRegistry(RegistrySettings(urls=(nowhere,), pause=0.001, attempts=2)).by_id(1)
    number = order(registry)
    both = SchemaRegistry(RegistrySettings(urls=(nowhere, registry.url), pause=0.001, attempts=2))
    assert both.by_id(number) is not None


def test_identities(registry: FakeRegistry) -> None:
    number = order(registry)
    registry.authorization = basic("me", "hush")
    assert client(registry, username="me", password="hush").by_id(number) is not None
    registry.authorization = "Bearer hush"
    assert client(registry, token="hush").by_id(number) is not None
    with pytest.raises(SchemaRegistryDenied, match="refuses the credentials") as caught:
        client(registry, token="wrong").by_id(number)
    assert not caught.value.retryable
    assert "wrong" not in f"{caught.value} {RegistrySettings(urls=(), token='wrong')}"


def test_another_server(registry: FakeRegistry) -> None:
    for path in ("/x", "/.."):
        with pytest.raises(SchemaRegistryError, match="no schema registry"):
            SchemaRegistry(RegistrySettings(urls=(registry.url + path,), pause=0.001)).latest("s")


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
    found = source_schema(settings, SchemaPlace(topic="orders", part="value", subjects=Subjects(section)))
    assert found is not None
    assert found.message == message


def test_ids_travel(registry: FakeRegistry) -> None:
    number = order(registry)
    ids = pickle.loads(pickle.dumps(RegistryIds(settings=RegistrySettings(urls=(registry.url,)))))
    assert ids.messages(number, (1,)) == {"shop.Other"}
    assert ids.messages(number, (9,)) == frozenset()
    assert ids.messages(1, (0,)) is None


def test_a_registry_that_failed_is_left_alone_for_a_while(registry: FakeRegistry) -> None:
    number = order(registry)
    resting = client(registry, attempts=3, rest=3600.0)
    registry.faults[:] = [503] * 3
    for _ in range(2):
        with pytest.raises(SchemaRegistryUnavailable):
            resting.by_id(number)
    assert len(registry.asked) == 3
    eager = client(registry, attempts=3, rest=0.0)
    registry.faults[:] = [503] * 3
    with pytest.raises(SchemaRegistryUnavailable):
        eager.by_id(number)
    assert eager.by_id(number) is not None


def test_what_is_newest_is_believed_for_a_while(registry: FakeRegistry) -> None:
    registry.register("s", MONEY)
    believing, asking = client(registry, latest_ttl=3600.0), client(registry)
    before = believing.latest("s").id
    assert asking.latest("s").id == before
    after = registry.register("s", MONEY.replace("units", "cents"))
    assert believing.latest("s").id == before
    assert asking.latest("s").id == after


def test_a_schema_that_nobody_can_read_is_looked_at_once(registry: FakeRegistry) -> None:
    number = registry.register("s", 'syntax = "proto3"; message M { Nope n = 1; }')
    one = client(registry)
    for _ in range(2):
        with pytest.raises(BadSchema, match="Nope"):
            one.by_id(number)
    assert len(registry.asked) == 1


def test_what_was_said_stands_in_for_a_registry_that_is_down(registry: FakeRegistry) -> None:
    number = order(registry)
    section = SchemaRegistrySection(url=registry.url, timeout=0.1)
    first = Subjects(section)
    before = first.latest("orders-value")
    assert before.id == number
    assert first.news.subjects == {"orders-value": number}
    remembered = RememberedSchemas(schemas=first.news.schemas, subjects=first.news.subjects)
    assert Subjects(section, remembered).news == RememberedSchemas()
    client_of.cache_clear()
    registry.down = True
    again = Subjects(section, remembered)
    found = again.latest("orders-value")
    assert (found.id, found.source("shop.Order")) == (number, before.source("shop.Order"))
    assert isinstance(again.down, SchemaRegistryUnavailable)
    assert again.news == RememberedSchemas()
    assert again.ids.messages(number, (0, 0)) == {"shop.Order.Line", "shop.Order.BeforeEntry"}
    with pytest.raises(SchemaRegistryUnavailable, match="nothing is known yet of the topic's schema"):
        again.latest("others-value")
    with pytest.raises(SchemaRegistryUnavailable):
        again.ids.messages(7, (0,))


def test_ids_learn(registry: FakeRegistry) -> None:
    number = order(registry)
    ids = RegistryIds(settings=RegistrySettings(urls=(registry.url,)))
    assert ids.messages(number, (1,)) == {"shop.Other"}
    news = ids.learned({number})
    assert news.keys() == {number}
    client_of.cache_clear()
    asked = len(registry.asked)
    knowing = pickle.loads(pickle.dumps(ids.knowing(news)))
    assert knowing.messages(number, (1,)) == {"shop.Other"}
    assert knowing.learned({number}) == {}
    assert len(registry.asked) == asked


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
    found = source_schema(settings, place)
    assert found is not None
    assert found.messages == ("shop.Order", "shop.Money")
    missing = settings.model_copy(update={"messages": ("shop.Order", "shop.Nope"), "subject_strategy": "topic_name"})
    with pytest.raises((BadSchema, UnknownSubject)):
        source_schema(missing, place)


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


@pytest.mark.parametrize(
    ("message", "indexes"),
    [
        ("shop.Order", (0,)),
        ("shop.Other", (1,)),
        ("shop.Order.Line", (0, 0)),
        ("shop.Order.Line.Part", (0, 0, 0)),
        ("shop.Money", None),
        ("other.Order", None),
    ],
)
def test_indexes_of_a_message(registry: FakeRegistry, message: str, indexes: tuple[int, ...] | None) -> None:
    order(registry)
    assert indexes_of(client(registry).latest("orders-value").main, message) == indexes


def test_a_coerced_message_knows_its_envelope(registry: FakeRegistry) -> None:
    number = order(registry)
    place = SchemaPlace(topic="orders", part="value", subjects=Subjects(SchemaRegistrySection(url=registry.url)))

    def envelope(message: str) -> bytes | None:
        settings = {"format": "protobuf", "wire_format": "confluent", "coerce": True, "message": message}
        found = source_schema(ProtobufFormat.model_validate(settings), place)
        return found and found.envelope

    assert envelope("shop.Order.Line") == b"\0" + number.to_bytes(4, "big") + b"\x04\0\0"
    with pytest.raises(BadSchema, match="only imports it"):
        envelope("shop.Money")


@pytest.mark.parametrize("status", [429, 503])
def test_a_registry_that_asks_to_wait_is_waited_for(registry: FakeRegistry, status: int) -> None:
    number = order(registry)
    registry.faults, registry.retry_after = [status], "1"
    started = time.monotonic()
    assert client(registry).by_id(number) is not None
    assert 1.0 <= time.monotonic() - started < 10.0


def test_a_registry_that_asks_for_too_much_is_left_alone_for_as_long(registry: FakeRegistry) -> None:
    number = order(registry)
    registry.faults, registry.retry_after = [503], "120"
    patient = client(registry, rest=0.0)
    started = time.monotonic()
    for _ in range(3):
        with pytest.raises(SchemaRegistryUnavailable) as caught:
            patient.by_id(number)
        assert caught.value.context["retry_after"] == 120.0
    assert time.monotonic() - started < 10.0
    assert len(registry.asked) == 1


def test_the_other_address_is_not_waited_for(registry: FakeRegistry) -> None:
    number = order(registry)
    with fake_registry() as busy:
        busy.faults, busy.retry_after = [503] * 9, "20"
        started = time.monotonic()
        both = SchemaRegistry(RegistrySettings(urls=(busy.url, registry.url), pause=0.001))
        assert both.by_id(number) is not None
        assert time.monotonic() - started < 10.0
