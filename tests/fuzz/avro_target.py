"""Fuzz target: Avro values between two good ones, against a plain reader.

The first two bytes choose schema and action. Refused exactly if Java refuses, every byte back.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from schema_mapping.avro.mapping import AvroMapping
from tests.fuzz.exact import exact_binary
from tests.support.schemas.avro_judge import is_readable
from tests.support.schemas.random_choices import SeededChoices
from tests.support.schemas.strategies_avro import mapping_of, written

ENVELOPE, LARGE, TWO_WRITERS = 1, 2, 4
RECURSION: Final = 50_000
"""Python's limit for the plain reader: the kernel reads 1,000 levels."""
PREFIX: Final = b"\0\0\0\0\7"


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


ENUM: Final = {"type": "enum", "name": "Enum", "symbols": ["A", "B", "CC"]}
FIXED: Final = {"type": "fixed", "name": "Fixed", "size": 3}
NODE: Final = record("Node", id="long", next=["null", "Node"], more={"type": "array", "items": "Node"})
FAMILY: Final[tuple[tuple[Any, Any], ...]] = (
    (
        record("Numbers", a="int", b="long", c="float", d="double", e="boolean"),
        {"a": 1, "b": 2, "c": 0.5, "d": 0.25, "e": True},
    ),
    (record("Texts", a="string", b="bytes", c=["null", "string"]), {"a": "ä", "b": b"\xff", "c": None}),
    (
        record(
            "Times",
            a=logical("int", "date"),
            b=logical("int", "time-millis"),
            c=logical("long", "time-micros"),
            d=logical("long", "timestamp-millis"),
            e=logical("long", "local-timestamp-micros"),
            f=["null", logical("string", "uuid")],
        ),
        {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": "0dd0e0a0-8be9-4c7f-8e9f-aa7dbe5a60f2"},
    ),
    (
        record(
            "Decimals",
            a=logical("bytes", "decimal", precision=5, scale=2),
            b={**FIXED, "size": 20, **logical("fixed", "decimal", precision=38)},
        ),
        {"a": b"\1", "b": bytes(20)},
    ),
    (record("Lists", a={"type": "array", "items": ["null", "int"]}), {"a": [1, None, 3]}),
    (record("Maps", a={"type": "map", "values": {"type": "array", "items": "string"}}), {"a": {"x": ["y"], "z": []}}),
    (record("Unions", a=["string", "null", ENUM, FIXED, record("In", x="long")]), {"a": ("In", {"x": 5})}),
    (
        record("Nothing", a={"type": "array", "items": "null"}, b={"type": "array", "items": record("E")}),
        {"a": [], "b": [{}]},
    ),
    (NODE, {"id": 1, "next": {"id": 2, "next": None, "more": []}, "more": []}),
    (
        record(
            "Deep",
            a={"type": "array", "items": {"type": "map", "values": ["null", record("Leaf", x=ENUM, y="double")]}},
        ),
        {"a": [{"k": {"x": "B", "y": 0.5}, "l": None}]},
    ),
)


@dataclass(frozen=True, slots=True)
class Subject:
    schema: Any
    mapping: AvroMapping
    writer: int
    good: bytes
    row: pa.StructArray


@cache
def subject(index: int, *, is_older: bool) -> Subject:
    schema, value = FAMILY[index]
    fields = [{"name": "late", "type": "string"}, *schema["fields"][:1]]
    mapping = mapping_of({**schema, "fields": fields}, schema) if is_older else mapping_of(schema)
    good = written(schema, value)
    row = mapping.decode(pa.array([good]), which=np.array([int(is_older)], np.int16))
    return Subject(schema, mapping, int(is_older), good, row)


@contextmanager
def recursion(most: int) -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(most)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def check(octets: bytes) -> None:
    """Raise AssertionError if a promise is broken."""
    if len(octets) < 2:
        return
    choice, payload = octets[1], octets[2:]
    tried = subject(octets[0] % len(FAMILY), is_older=bool(choice & TWO_WRITERS))
    prefix = PREFIX if choice & ENVELOPE else b""
    values = [tried.good, prefix + payload, None, tried.good]
    lengths = np.array([0, len(prefix), 0, 0], np.int32)
    which = np.full(4, tried.writer, np.int16)
    given = exact_binary(values, large=bool(choice & LARGE))
    rows = tried.mapping.decode(given, which=which, prefix_lengths=lengths)
    rows.validate(full=True)
    assert tried.mapping.encode(rows).to_pylist() == values
    error = rows.field("__err__")[1].as_py()
    if error is None or not error.startswith("too_deep"):
        with recursion(RECURSION):
            assert (error is None) == is_readable(tried.schema, payload), error
    if error is not None:
        assert 0 <= int(error.partition("@")[2]) <= len(values[1] or b"")
    for index in (0, 3):
        assert rows.slice(index, 1).equals(tried.row)


def seeds() -> Iterator[bytes]:
    for index in range(len(FAMILY)):
        good = subject(index, is_older=False).good
        for choice in range(8):
            yield bytes([index, choice]) + good
        yield bytes([index, 0]) + good[:-1]
        yield bytes([index, 0]) + good + b"\0"
        yield bytes([index, 0]) + b"\x80" * 10 + b"\1"
        for seed in range(3):
            yield bytes([index, seed]) + SeededChoices(seed).data(10 + 10 * seed)
    yield bytes([4, 0, 5, 12, 2, 2, 0, 2, 6, 0])
    yield bytes([5, 0, 8, 2, 97, 0, 2, 97, 0, 2, 98, 0, 2, 97, 0, 0])
    yield bytes([8, 0]) + b"\2\2" * 1200 + b"\2\0\0"
