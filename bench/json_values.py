"""How fast JSON values become columns and come back, compared with DuckDB's `read_json` and Python's objects.

Recipe: `python bench/json_values.py [--values 50000] [--rounds 5]`. The values are compact orders with a nested object,
a list of objects, a map and a nullable member. The sides take turns with the same values in one process. Results are
medians of the rounds, in MB of values for a second of CPU time. In the same pass, ours also proves that every byte can
come back. DuckDB is given the columns, one thread and a file of lines. Python's json makes objects, not columns.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent.parent))

import duckdb
import pyarrow as pa

from schema_mapping import LedgerState, assign
from schema_mapping.json.schema import JsonSchema


def members(**types: Any) -> dict[str, Any]:
    return {"type": "object", "properties": types}


TEXT, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
ORDER: Final = members(
    order_id=INTEGER,
    customer=TEXT,
    email={"type": ["string", "null"]},
    status={"enum": ["NEW", "PAID", "SENT"]},
    created=INTEGER,
    total=NUMBER,
    currency=TEXT,
    is_paid={"type": "boolean"},
    address=members(street=TEXT, city=TEXT, zip=TEXT, country=TEXT),
    lines={"type": "array", "items": members(sku=TEXT, quantity=INTEGER, price=NUMBER)},
    tags={"type": "array", "items": TEXT},
    attributes={"type": "object", "additionalProperties": TEXT},
)
COLUMNS: Final = {
    "order_id": "BIGINT",
    "customer": "VARCHAR",
    "email": "VARCHAR",
    "status": "VARCHAR",
    "created": "BIGINT",
    "total": "DOUBLE",
    "currency": "VARCHAR",
    "is_paid": "BOOLEAN",
    "address": "STRUCT(street VARCHAR, city VARCHAR, zip VARCHAR, country VARCHAR)",
    "lines": "STRUCT(sku VARCHAR, quantity BIGINT, price DOUBLE)[]",
    "tags": "VARCHAR[]",
    "attributes": "MAP(VARCHAR, VARCHAR)",
}


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


def written(item: Any) -> bytes:
    return json.dumps(item, separators=(",", ":")).encode()


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    choices = random.Random(1)
    orders = [order(number, choices) for number in range(options.values)]
    values = [written(item) for item in orders]
    column = pa.array(values, pa.binary())
    mapping = assign(LedgerState(), value=JsonSchema.of(json.dumps(ORDER))).row.value
    rows = mapping.decode(column)
    assert rows.field("__raw__").null_count == len(values)
    assert mapping.encode(rows).equals(column)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect(config={"threads": 1}) as database:
        lines = Path(folder) / "orders.ndjson"
        lines.write_bytes(b"\n".join(values))
        columns = ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS.items())
        query = f"SELECT * FROM read_json('{lines}', format = 'newline_delimited', columns = {{{columns}}})"  # noqa: S608 - of this file
        sides: dict[str, Callable[[], object]] = {
            "decode": lambda: mapping.decode(column),
            "encode": lambda: mapping.encode(rows),
            "json reads": lambda: [json.loads(value) for value in values],
            "json writes": lambda: [written(item) for item in orders],
            "duckdb reads": lambda: database.execute(query).to_arrow_table(),
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
    for ours, theirs in (("decode", "duckdb reads"), ("decode", "json reads"), ("encode", "json writes")):
        print(f"{ours}: {median(taken[theirs]) / median(taken[ours]):.1f} times {theirs}")


if __name__ == "__main__":
    main()
