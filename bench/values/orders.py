"""Orders of a shop: sub-messages, a list, a map, an enum; 230 bytes."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.descriptor import Descriptor

from values.proto3 import message_type

TYPES = {
    "Address": "street:1:STRING city:2:STRING zip:3:STRING country:4:STRING lat:5:DOUBLE lon:6:DOUBLE",
    "Customer": "id:1:INT64 name:2:STRING email:3:STRING address:4:.shop.Address vip:5:BOOL",
    "Line": "sku:1:STRING quantity:2:INT32 cents:3:INT64 discount:4:DOUBLE",
    "Order": "id:1:INT64 number:2:STRING status:3:=.shop.Status customer:4:.shop.Customer lines:5*:.shop.Line"
    " labels:6:{} created:7:INT64 total:8:INT64 note:9:STRING paid:10:BOOL points:11*:INT32",
}
STATUS = ("STATUS_UNKNOWN", "STATUS_PLACED", "STATUS_PAID", "STATUS_SHIPPED", "STATUS_DELIVERED")


def order_type() -> Descriptor:
    return message_type("shop", TYPES, {"Status": STATUS})


def order(draw: random.Random, index: int) -> dict[str, Any]:
    return {
        "id": 10_000_000 + index,
        "number": f"ORD-{index:08d}",
        "status": draw.randrange(5),
        "created": 1_700_000_000_000 + index * 37,
        "total": draw.randrange(100, 500_000),
        "note": draw.choice(("", "leave at the door")),
        "paid": draw.random() < 0.7,
        "points": [draw.randrange(1000) for _ in range(draw.randrange(4))],
        "labels": {draw.choice(("channel", "campaign")): draw.choice(("web", "app", "store"))},
        "lines": [_line(draw) for _ in range(draw.randrange(1, 4))],
        "customer": _customer(draw),
    }


def _line(draw: random.Random) -> dict[str, Any]:
    return {
        "sku": f"SKU-{draw.randrange(10**6):06d}",
        "quantity": draw.randrange(1, 9),
        "cents": draw.randrange(99, 99_999),
        "discount": draw.choice((0.0, 0.1, 0.25)),
    }


def _customer(draw: random.Random) -> dict[str, Any]:
    return {
        "id": draw.randrange(10**9),
        "name": draw.choice(("Ada Lovelace", "Grace Hopper", "Emmy Noether", "Sof\u00eda Koval\u00e9vskaya")),
        "email": f"customer{draw.randrange(10**6)}@example.org",
        "vip": draw.random() < 0.1,
        "address": {
            "street": f"{draw.randrange(1, 400)} Long Street",
            "city": draw.choice(("Rotterdam", "K\u00f8benhavn", "Oslo")),
            "zip": f"{draw.randrange(1000, 9999)} AB",
            "country": "NL",
            "lat": draw.random() * 90,
            "lon": draw.random() * 180,
        },
    }
