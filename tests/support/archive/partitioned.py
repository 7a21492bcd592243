"""A topic partitioned by columns, checked by pyiceberg."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf import message_factory
from google.protobuf.message import DecodeError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack

PROTO = """
syntax = "proto3"; package t;
message Customer { optional string region = 1; int32 tier = 2; }
message Order {
  int64 id = 1; string sku = 2; Customer customer = 3; double price = 4; bytes blob = 5; bool paid = 6; uint64 big = 7;
  repeated string tags = 8;
}
"""
PARTITIONS = 2
DAY = 86_400_000
START = 1_767_225_600_000
TERMS = ["day", "val.customer.region", "bucket(3, key.__raw__)", "truncate(2, val.sku)"]
REGIONS = ("eu", "us", "", "日本", None)
SKUS = ("A-1", "A-2", "B", "", "ü€😀x", "%2F/.. =", "zz" * 200)


def order(numbers: random.Random, number: int) -> bytes | None:
    if number % 17 == 3:
        return None
    if number % 19 == 5:
        return b"\xff\xff" + b"%d" % number
    kind = message_factory.GetMessageClass(descriptor_of(PROTO, "t.Order"))
    made = kind(id=number - 50, sku=numbers.choice(SKUS), price=numbers.choice((1.5, float("nan"), -0.0, 0.0)))
    region = numbers.choice(REGIONS)
    if number % 5:
        made.customer.tier = number % 3
        if region is not None:
            made.customer.region = region
    made.blob = numbers.randbytes(number % 4)
    made.paid = number % 2 == 0
    made.big = numbers.choice((0, 1, 2**63, 2**64 - 1))
    encoded: bytes = made.SerializeToString(deterministic=True)
    return encoded + (b"\x38\x07" if number % 23 == 1 else b"")  # a field twice: kept raw beside its columns


def produce(stack: Stack, topic: str, turn: int, *, count: int = 200, seed: int = 7) -> None:
    numbers = random.Random(seed + turn)
    stack.produce(
        topic,
        *(
            {
                "value": order(numbers, number),
                "key": None if number % 11 == 0 else b"k%d" % numbers.randrange(40),
                "partition": number % PARTITIONS,
                "timestamp": START + turn * DAY + number,
                "headers": [("n", b"%d" % number)] if number % 2 else None,
            }
            for number in range(turn * count, (turn + 1) * count)
        ),
        batch_num_messages=7,
    )


def undecodable(proto: str, values: Iterable[bytes | None]) -> int:
    kind = message_factory.GetMessageClass(descriptor_of(proto, "t.Order"))
    count = 0
    for value in values:
        try:
            kind.FromString(value or b"")
        except DecodeError:
            count += 1
    return count


def settings(folder: Path, terms: list[str] | str = TERMS, **more: Any) -> dict[str, Any]:
    proto = folder / "order.proto"
    if not proto.exists():
        proto.write_text(PROTO)
    return {
        "value": {"format": "protobuf", "message": "t.Order", "proto": str(proto)},
        "partition_by": list(terms) if not isinstance(terms, str) else terms,
        **more,
    }


def check_files(table: Table) -> Counter[int]:
    counter: Counter[int] = Counter()
    for task in table.scan().plan_files():
        file = task.file
        spec = table.specs()[file.spec_id]
        counter[file.spec_id] += 1
        with table.io.new_input(file.file_path).open() as stream:
            rows = pq.read_table(pa.PythonFile(stream, mode="r")).to_pylist()
        assert len(rows) == file.record_count > 0
        expected = {partition_of(table.schema(), spec, row) for row in rows}
        values = tuple(file.partition[position] for position in range(len(spec.fields)))
        assert expected == {values}, (spec, expected, values)
    return counter


def partition_of(schema: Schema, spec: PartitionSpec, row: Any) -> tuple[Any, ...]:
    return tuple(
        field.transform.transform(schema.find_type(field.source_id))(
            in_iceberg(value_at(row, column_path(schema, field.source_id)))
        )
        for field in spec.fields
    )


def column_path(schema: Schema, field_id: int) -> list[str]:
    name = schema.find_column_name(field_id)
    assert name is not None
    return name.split(".")


def value_at(row: Any, path: list[str]) -> Any:
    for step in path:
        row = None if row is None else row.get(step)
    return row


def in_iceberg(value: Any) -> Any:
    return int(value.timestamp() * 1_000_000) if hasattr(value, "timestamp") else value
