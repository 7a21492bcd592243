"""A nested order, and random values by Google's library."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf import message_factory

from archiver.schemas.protobuf.schema_files import compile_proto
from schema_mapping.protobuf.descriptors import find_descriptor

ORDER_PROTO = """
syntax = "proto3";
package shop;
enum State { NEW = 0; PAID = 1; SENT = 2; }
message Money { string currency = 1; int64 units = 2; sint32 nanos = 3; }
message Line { string sku = 1; uint32 quantity = 2; Money price = 3; repeated string tags = 4; }
message Address { string street = 1; string city = 2; optional string zip = 3; }
message Order {
  uint64 id = 1;
  string customer = 2;
  State state = 3;
  repeated Line lines = 4;
  map<string, int64> counters = 5;
  oneof target { Address address = 6; string locker = 7; }
  repeated double ratings = 8;
  optional bool gift = 9;
  bytes token = 10;
  map<int32, Line> substitutes = 11;
  Order previous = 12;
}
"""


@cache
def order_class() -> type[Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "order.proto"
        path.write_text(ORDER_PROTO)
        return message_factory.GetMessageClass(find_descriptor(compile_proto(path, "shop.Order")))


def order_bytes(noise: random.Random) -> bytes:
    order = order_class()(
        id=noise.getrandbits(64),
        customer=f"customer-{noise.randrange(1000)}",
        state=noise.choice((0, 1, 2, 77)),
        lines=[_line(noise) for _ in range(noise.randrange(4))],
        counters={f"c{number}": noise.randrange(-5, 5) for number in range(noise.randrange(4))},
        ratings=[noise.random() for _ in range(noise.randrange(3))],
        token=noise.randbytes(noise.randrange(8)),
        substitutes={number: _line(noise) for number in range(noise.randrange(2))},
    )
    if noise.random() < 0.5:
        order.address.city = "Zürich"
    elif noise.random() < 0.5:
        order.locker = "L7"
    if noise.random() < 0.3:
        order.gift = noise.random() < 0.5
    if noise.random() < 0.2:
        order.previous.id = 1
        order.previous.previous.customer = "older"
    encoded: bytes = order.SerializeToString()
    return encoded


def _line(noise: random.Random) -> dict[str, Any]:
    return {
        "sku": f"sku-{noise.randrange(100)}",
        "quantity": noise.getrandbits(32),
        "price": {"currency": "CHF", "units": noise.randrange(-100, 100), "nanos": noise.randrange(-5, 5)},
        "tags": ["a", "", "é"][: noise.randrange(4)],
    }
