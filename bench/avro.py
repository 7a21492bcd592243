"""How fast Avro values become columns and come back, compared with fastavro's Python objects.

Recipe: `python bench/avro.py [--values 50000] [--rounds 5]`. The values are orders with a nested record, a list of
records, a map and a nullable field. The sides take turns with the same values in one process. Results are medians of
the rounds, in MB of values for a second of one core's time. In the same pass, ours also proves that every byte can come
back. fastavro makes objects, not columns.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent.parent))

import fastavro
import pyarrow as pa

from schema_mapping import LedgerState, assign
from schema_mapping.avro.schema import AvroSchema


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


ORDER: Final = record(
    "Order",
    order_id="long",
    customer="string",
    email=["null", "string"],
    status={"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SENT"]},
    created={"type": "long", "logicalType": "timestamp-millis"},
    total="double",
    currency="string",
    is_paid="boolean",
    address=record("Address", street="string", city="string", zip="string", country="string"),
    lines={"type": "array", "items": record("Line", sku="string", quantity="int", price="double")},
    tags={"type": "array", "items": "string"},
    attributes={"type": "map", "values": "string"},
)


def order(number: int, choices: random.Random) -> dict[str, Any]:
    lines = range(choices.randrange(1, 4))
    return {
        "order_id": number * 7_919,
        "customer": f"customer-{choices.randrange(10**6)}",
        "email": None if number % 3 else f"c{number}@example.com",
        "status": "PAID",
        "created": 1_700_000_000_000 + number,
        "total": choices.random() * 1_000,
        "currency": "EUR",
        "is_paid": number % 2 == 0,
        "address": {"street": "Main street 12", "city": "Berlin", "zip": "10115", "country": "DE"},
        "lines": [{"sku": f"sku-{choices.randrange(9_999)}", "quantity": 2, "price": choices.random()} for _ in lines],
        "tags": ["web"] * (number % 2),
        "attributes": {"channel": "web"},
    }


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    choices, parsed = random.Random(1), fastavro.parse_schema(ORDER)
    orders = [order(number, choices) for number in range(options.values)]

    def write() -> list[bytes]:
        outputs = [io.BytesIO() for _ in orders]
        for output, item in zip(outputs, orders, strict=True):
            fastavro.schemaless_writer(output, parsed, item)
        return [output.getvalue() for output in outputs]

    values = write()
    column = pa.array(values, pa.binary())
    mapping = assign(LedgerState(), value=AvroSchema.of(json.dumps(ORDER))).row.value
    rows = mapping.decode(column)
    assert rows.field("__raw__").null_count == len(values)
    assert mapping.encode(rows).equals(column)
    sides: dict[str, Callable[[], object]] = {
        "decode": lambda: mapping.decode(column),
        "encode": lambda: mapping.encode(rows),
        "fastavro reads": lambda: [fastavro.schemaless_reader(io.BytesIO(value), parsed, None) for value in values],
        "fastavro writes": write,
    }
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, work in sides.items():
            taken[name].append(seconds(work))
    size = sum(map(len, values))
    print(f"{len(values):,} orders of {size / len(values):.0f} B")
    for name, times in taken.items():
        spent = median(times)
        print(f"{name:16} {size / spent / 1e6:8.0f} MB/s {len(values) / spent / 1e6:8.2f} M/s")
    for ours, theirs in (("decode", "fastavro reads"), ("encode", "fastavro writes")):
        print(f"{ours}: {median(taken[theirs]) / median(taken[ours]):.0f} times {theirs}")


if __name__ == "__main__":
    main()
