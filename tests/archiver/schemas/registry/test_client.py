"""The client of a schema registry."""

from __future__ import annotations

import base64
from importlib import resources

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from archiver.errors import BadSchema, SchemaRegistryUnavailable, UnknownSubject
from archiver.schemas.protobuf.registered_schema import indexes_of
from schema_mapping import compile_mapping
from schema_mapping.protobuf.descriptors import find_descriptor
from tests.support.schemas.fake_registry import FakeRegistry
from tests.support.schemas.proto_text import compile_text
from tests.support.schemas.shop_schemas import MONEY, UNIT, client, order


def as_base64(text: str, *, name: str = "default") -> str:
    """A schema as serializers with descriptors register it: the file alone, without its imports."""
    imports = {"shop_money.proto": MONEY}
    files = FileDescriptorSet.FromString(compile_text(text, imports=imports).descriptor_set).file
    file = next(file for file in files if file.name == "test.proto")
    file.name = name
    file.ClearField("source_code_info")
    return base64.b64encode(file.SerializeToString()).decode()


def test_text_with_references_of_references(registry: FakeRegistry) -> None:
    number = order(registry)
    schema = client(registry).latest("orders-value")
    assert schema.id == number
    descriptor = find_descriptor(schema.source("shop.Order"))
    assert descriptor.fields_by_name["unit"].message_type.fields_by_name["price"].message_type.full_name == "shop.Money"


def test_base64_and_text_may_refer_to_each_other(registry: FakeRegistry) -> None:
    registry.register("money", as_base64(MONEY))
    text = 'syntax = "proto3"; import "shop_money.proto"; message M { shop.Money price = 1; }'
    registry.register("texts-value", text, [("shop_money.proto", "money", 1)])
    registry.register("money", MONEY)
    registry.register("bytes-value", as_base64(text), [("shop_money.proto", "money", 2)])
    for subject in ("texts-value", "bytes-value"):
        schema = client(registry).latest(subject)
        assert schema.messages_at((0,)) == {"M"}
        assert find_descriptor(schema.source("M")).fields_by_name["price"].message_type.full_name == "shop.Money"


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
    schema = client(registry).by_id(order(registry))
    assert schema is not None
    assert schema.messages_at((0,)) == {"shop.Order"}
    assert schema.messages_at((1,)) == {"shop.Other"}
    assert schema.messages_at((0, 0)) == {"shop.Order.Line", "shop.Order.BeforeEntry"}
    assert schema.messages_at((0, 1, 0)) == {"shop.Order.Line.Part"}
    assert schema.messages_at((2,)) == schema.messages_at((0, 7)) == schema.messages_at(()) == frozenset()


def test_an_id_is_asked_for_once(registry: FakeRegistry) -> None:
    number = order(registry)
    registry_client = client(registry)
    assert registry_client.by_id(number) is registry_client.by_id(number) is registry_client.latest("orders-value")
    assert registry.asked.count(f"/apis/ccompat/v7/schemas/ids/{number}") == 1
    assert registry_client.by_id(7) is registry_client.by_id(7) is None
    assert sum("/schemas/ids/7" in path for path in registry.asked) == 1


def test_an_id_that_comes_later_is_found(registry: FakeRegistry) -> None:
    registry_client = client(registry, forget_after=0.0)
    assert registry_client.by_id(100_001) is None
    assert registry.register("s", MONEY) == 100_001
    assert registry_client.by_id(100_001) is not None


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
    registry_client = client(registry)
    for _ in range(2):
        with pytest.raises(BadSchema, match="Nope"):
            registry_client.by_id(number)
    assert [path.partition("?")[2] for path in registry.asked] == ["", "format=serialized"]


QUOTED = """syntax = "proto3"; package s; import "google/protobuf/descriptor.proto"; enum L { L0 = 0; HIGH = 1; }
extend google.protobuf.FieldOptions { optional L lvl = 50001; }
message M { repeated int32 a = 1 [packed = false, (lvl) = %s]; }"""


UNREADABLE = (QUOTED % '"HIGH"').replace("packed = false", "packed = [false]")
"""A list for an option of Protobuf, which must not be left out."""


@pytest.mark.parametrize("subject", [None, "s", ":.ctx:s"])
def test_a_text_that_protoc_refuses_is_asked_for_as_a_descriptor(registry: FakeRegistry, subject: str | None) -> None:
    number = registry.register(subject or "s", UNREADABLE, serialized=as_base64(QUOTED % "HIGH"))
    registry_client = client(registry)
    schema = registry_client.by_id(number, subject)
    assert schema is not None
    field = find_descriptor(schema.source("s.M")).fields_by_name["a"]
    assert not field.is_packed
    assert registry_client.latest(subject or "s") is schema
    by_guid = client(registry).by_id(registry.guid(subject or "s"), subject)
    assert by_guid is not None
    assert by_guid.messages_at((0,)) == {"s.M"}


def test_reference_refused_by_protoc_is_read_as_descriptor(registry: FakeRegistry) -> None:
    registry.register("options", UNREADABLE, serialized=as_base64(QUOTED % "HIGH"))
    text = 'syntax = "proto3"; import "options.proto"; message W { s.M m = 1; }'
    descriptor = FileDescriptorSet.FromString(
        compile_text(text, imports={"options.proto": QUOTED % "HIGH"}).descriptor_set
    ).file
    whole = next(file for file in descriptor if file.name == "test.proto")
    serialized = base64.b64encode(whole.SerializeToString()).decode()
    registry.register("w", text, [("options.proto", "options", 1)], serialized=serialized)
    source = client(registry).latest("w").source("W")
    assert find_descriptor(source).fields_by_name["m"].message_type.full_name == "s.M"


@pytest.mark.parametrize("status", [None, 400, 422])
def test_a_registry_without_descriptors_has_its_text_read(registry: FakeRegistry, status: int | None) -> None:
    number = registry.register("s", QUOTED % '"HIGH"')
    refused = registry.register("s", UNREADABLE)
    if status is not None:
        registry.refuses["format"] = status
    readers = client(registry, rest=3600.0)
    schema = readers.by_id(number)
    assert schema is not None
    assert not find_descriptor(schema.source("s.M")).fields_by_name["a"].is_packed
    with pytest.raises(BadSchema, match="Expected option value"):
        readers.by_id(refused)
    assert [path.partition("?")[2] for path in registry.asked] == ["", "", "format=serialized"]
    assert readers.by_id(registry.register("s", MONEY)) is not None, "the registry isn't taken for down"


def test_an_error_500_for_a_descriptor_is_retried(registry: FakeRegistry) -> None:
    number = registry.register("s", UNREADABLE, serialized=as_base64(QUOTED % "HIGH"))
    readers = client(registry, attempts=3, rest=3600.0)
    registry.refuses["format"] = 500
    for _ in range(2):
        with pytest.raises(SchemaRegistryUnavailable, match="status=500"):
            readers.by_id(number)
    assert [path.partition("?")[2] for path in registry.asked] == ["", *["format=serialized"] * 3] * 2
    registry.refuses.clear()
    assert readers.by_id(number) is not None


def test_an_error_500_is_a_refusal_if_there_are_references(registry: FakeRegistry) -> None:
    """Karapace 3 to 6 answers 500 if the schema has references: its `schemas_get` parses the text without them."""
    registry.register("money", MONEY)
    number = registry.register("s", UNREADABLE, [("shop/money.proto", "money", 1)])
    readers = client(registry, attempts=2, rest=3600.0)
    registry.refuses["format"] = 500
    with pytest.raises(BadSchema, match="Expected option value"):
        readers.by_id(number)
    assert ["format=" in path for path in registry.asked][-3:] == [False, True, True]
    assert readers.by_id(registry.register("t", MONEY)) is not None, "the registry isn't taken for down"


def test_a_descriptor_is_not_asked_for_without_need(registry: FakeRegistry) -> None:
    """Karapace's descriptors lack options such as `packed`, and have types such as `map<string, int32>`."""
    lossy = as_base64(QUOTED.replace("packed = false, ", "") % "HIGH")
    schema = client(registry).by_id(registry.register("s", QUOTED % '"HIGH"', serialized=lossy))
    assert schema is not None
    assert not find_descriptor(schema.source("s.M")).fields_by_name["a"].is_packed


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
