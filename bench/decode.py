"""The speed at which Protobuf values become columns, beside ptars (Rust) and upb on the same values.

Recipe: `python bench/decode.py [messages] [rounds]`. Nested orders of about 230 bytes: scalars, strings, an enum, two
sub-messages, a list of lines and a map. The sides take turns; the median of the rounds counts, in MB of values for a
second of one core's time. upb parses each value into a Python object, and makes no columns.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from ptars import HandlerPool, PtarsConfig

from schema_mapping import compile_mapping

F = FieldDescriptorProto
FIELDS = {
    "Address": ("street:1:STRING city:2:STRING zip:3:STRING country:4:STRING", "lat:5:DOUBLE lon:6:DOUBLE"),
    "Customer": ("id:1:INT64 name:2:STRING email:3:STRING", "address:4:.shop.Address vip:5:BOOL"),
    "Line": ("sku:1:STRING quantity:2:INT32 cents:3:INT64", "discount:4:DOUBLE"),
    "Order": (
        "id:1:INT64 number:2:STRING status:3:.shop.Status customer:4:.shop.Customer lines:5*:.shop.Line",
        "labels:6*:.shop.Order.LabelsEntry created:7:INT64 total:8:INT64 note:9:STRING paid:10:BOOL points:11*:INT32",
    ),
}


def order_type() -> Descriptor:
    """The message type `shop.Order`."""
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    status = file.enum_type.add(name="Status")
    for value, name in enumerate(("UNKNOWN", "PLACED", "PAID", "SHIPPED", "DELIVERED")):
        status.value.add(name=f"STATUS_{name}", number=value)
    for name, parts in FIELDS.items():
        message = file.message_type.add(name=name)
        for each in " ".join(parts).split():
            field, number, kind = each.split(":")
            label = F.LABEL_REPEATED if number.endswith("*") else F.LABEL_OPTIONAL
            added = message.field.add(name=field, number=int(number.rstrip("*")), label=label)
            if kind.startswith("."):
                added.type_name = kind
                added.type = F.TYPE_ENUM if kind == ".shop.Status" else F.TYPE_MESSAGE
            else:
                added.type = F.Type.Value(f"TYPE_{kind}")
    entry = file.message_type[-1].nested_type.add(name="LabelsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=F.TYPE_STRING)
    entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL, type=F.TYPE_STRING)
    pool = DescriptorPool()
    pool.Add(file)
    return pool.FindMessageTypeByName("shop.Order")


def make_order(kind: type[Message], draw: random.Random, index: int) -> bytes:
    """One order, written by upb."""
    values = {
        "id": 10_000_000 + index,
        "number": f"ORD-{index:08d}",
        "status": draw.randrange(5),
        "created": 1_700_000_000_000 + index * 37,
        "total": draw.randrange(100, 500_000),
        "note": draw.choice(("", "leave at the door")),
        "paid": draw.random() < 0.7,
        "points": [draw.randrange(1000) for _ in range(draw.randrange(4))],
        "labels": {draw.choice(("channel", "campaign")): draw.choice(("web", "app", "store"))},
        "lines": [
            {
                "sku": f"SKU-{draw.randrange(10**6):06d}",
                "quantity": draw.randrange(1, 9),
                "cents": draw.randrange(99, 99_999),
                "discount": draw.choice((0.0, 0.1, 0.25)),
            }
            for _ in range(draw.randrange(1, 4))
        ],
        "customer": {
            "id": draw.randrange(10**9),
            "name": draw.choice(("Ada Lovelace", "Grace Hopper", "Emmy Noether")),
            "email": f"customer{draw.randrange(10**6)}@example.org",
            "vip": draw.random() < 0.1,
            "address": {
                "street": f"{draw.randrange(1, 400)} Long Street",
                "city": "Rotterdam",
                "zip": f"{draw.randrange(1000, 9999)} AB",
                "country": "NL",
                "lat": draw.random() * 90,
                "lon": draw.random() * 180,
            },
        },
    }
    return kind(**values).SerializeToString()


def measure(sides: dict[str, Callable[[], object]], size: int, rounds: int) -> dict[str, float]:
    """Median MB/s of each side, which take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, run in sides.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    return {name: size / statistics.median(times) / 1e6 for name, times in seconds.items()}


def main() -> None:
    """Prints the medians."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    descriptor = order_type()
    kind = GetMessageClass(descriptor)
    draw = random.Random(7)
    values = [make_order(kind, draw, index) for index in range(count)]
    column = pa.array(values, pa.binary())
    size = sum(map(len, values))
    mapping = compile_mapping(descriptor)
    rows = mapping.decode(column)
    assert rows.field("__raw__").null_count == count
    assert mapping.encode(rows).equals(column)
    ptars = HandlerPool([descriptor.file], PtarsConfig(enum_repr="string")).get_for_message(descriptor)
    medians = measure(
        {
            "decode": lambda: mapping.decode(column),
            "encode": lambda: mapping.encode(rows),
            "ptars decode": lambda: ptars.array_to_record_batch(column),
            "upb FromString": lambda: [kind.FromString(value) for value in values],
        },
        size,
        rounds,
    )
    print(f"{count} orders of {size / count:.0f} bytes, median of {rounds}")
    for name, speed in medians.items():
        print(f"{name:16} {speed:8.0f} MB/s")


if __name__ == "__main__":
    main()
