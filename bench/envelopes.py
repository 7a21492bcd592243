"""What it costs to find schema ids: before the values, and in record headers.

Recipe: `python bench/envelopes.py [--records 65536] [--turns 61]`. All cases decode the same message in turns: its
envelope before the value without headers, with other headers, and with the envelope in a header. "Never looked" reads
the first case without its headers, as topics had it before headers counted. CPU milliseconds, median and least of the
turns. No servers are needed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from archiver.schemas.protobuf.message_choice import MessageChoice
from archiver.schemas.protobuf.registered_schema import Indexes
from archiver.schemas.registry.envelope import RegistryEnvelopes
from archiver.wire.columns import RECORDS
from archiver.wire.header_ids import VALUE_HEADER
from catalog.model import SchemaIdentity, SchemaNumber
from schema_mapping import compile_mapping
from tests.support.schemas.proto_text import descriptor_of

MAPPING = compile_mapping(descriptor_of("message M { int32 a = 1; string b = 2; int64 c = 3; double d = 4; }"))
ENVELOPE = b"\0\0\0\0\1\0"
BODY = b"\x08\x05\x12\x0ahelloworld\x18\xff\x01\x21" + b"\0" * 7 + b"\x3f"
OTHERS = ((b"traceparent", b"00-4bf92f35"), (b"source", b"shop"), (b"content-type", b"protobuf"))


@dataclass(frozen=True)
class OneSchema:
    def messages(self, schema_id: SchemaNumber, indexes: Indexes) -> frozenset[str]:
        del schema_id, indexes
        return frozenset({"t.M"})

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        return dict.fromkeys(map(SchemaIdentity, schema_ids), b"")

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> OneSchema:
        del schemas
        return self


def headers(count: int, *pairs: tuple[bytes, bytes]) -> pa.ListArray:
    return pa.array([[{"key": key, "value": value} for key, value in pairs]] * count, RECORDS.field("headers").type)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=65_536)
    parser.add_argument("--turns", type=int, default=61)
    options = parser.parse_args()
    count = options.records
    enveloped, bare = pa.array([ENVELOPE + BODY] * count), pa.array([BODY] * count)
    cases: dict[str, tuple[pa.BinaryArray, pa.ListArray | None]] = {
        "never looked": (enveloped, None),
        "no headers": (enveloped, headers(count)),
        "three other headers": (enveloped, headers(count, *OTHERS)),
        "in a header": (bare, headers(count, *OTHERS, (VALUE_HEADER, ENVELOPE))),
    }
    reader = RegistryEnvelopes(choice=MessageChoice(messages=("t.M",), ids=OneSchema()))
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(options.turns):
        for name, (values, lists) in cases.items():
            started = time.process_time()
            envelopes = reader.read(values, lists)
            MAPPING.decode(values, which=envelopes.which, prefix_lengths=envelopes.lengths)
            seconds[name].append(time.process_time() - started)
    table = Table("envelopes", "median ms", "least ms", title=f"{count:,} records")
    for name, times in seconds.items():
        table.add_row(name, f"{statistics.median(times) * 1e3:.2f}", f"{min(times) * 1e3:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
