"""Schemas that refer to each other."""

from __future__ import annotations

from archiver.schemas.protobuf.registered_schema import PROTOBUF_SCHEMAS, CompiledSchema
from archiver.schemas.registry.client import SchemaRegistry, SchemasOfKind
from archiver.schemas.registry.settings import SchemaRegistrySettings
from tests.support.schemas.fake_registry import FakeRegistry

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


def client(registry: FakeRegistry, **more: object) -> SchemasOfKind[CompiledSchema]:
    return client_of_urls((registry.url,), **more)


def client_of_urls(urls: tuple[str, ...], **more: object) -> SchemasOfKind[CompiledSchema]:
    settings = SchemaRegistrySettings(urls=urls, **{"pause": 0.001, **more})  # type: ignore[arg-type]
    return SchemaRegistry(settings).schemas(PROTOBUF_SCHEMAS)


def order(registry: FakeRegistry) -> int:
    registry.register("money", MONEY)
    registry.register("unit", UNIT, [("shop/money.proto", "money", 1)])
    return registry.register("orders-value", ORDER, [("shop/unit.proto", "unit", 1)])
