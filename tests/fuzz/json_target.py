"""Fuzz target: JSON values between two good ones, against Python's json.

The first two bytes choose schema and action. Refused exactly if not JSON of the type, every byte back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from schema_mapping import MappingOptions
from schema_mapping.json.mapping import JsonMapping
from tests.fuzz.exact import exact_binary
from tests.support.schemas.hostile_json import NOT_JSON, NUMBERS, ODD_OBJECTS, ORDER, TEXTS
from tests.support.schemas.json_judge import is_json
from tests.support.schemas.random_choices import SeededChoices
from tests.support.schemas.strategies_json import WRITERS, json_mapping

ENVELOPE, LARGE, CUT, ALONE = 1, 2, 4, 8
SURELY_READ: Final = 1_000
"""No value is limited to fewer levels. Python's own limit is lower."""
PREFIX: Final = b"\0\0\0\0\7"


def members(**types: Any) -> dict[str, Any]:
    return {"type": "object", "properties": types}


NUMBER: Final = {"type": "number"}
TEXT: Final = {"type": "string"}
LIST: Final = {"type": "array", "items": members(x=NUMBER, y=TEXT)}
FAMILY: Final[tuple[tuple[Any, Any], ...]] = (
    (ORDER, {"id": 1, "price": 0.5, "tags": ["a", None], "labels": {"k": 1.5}, "at": {"y": 2}, "source": "s"}),
    (
        members(a={"type": "integer"}, b=NUMBER, c=TEXT, d={"type": "boolean"}),
        {"a": 1, "b": 2.5, "c": "\u00e9", "d": True},
    ),
    (members(a=LIST, b=members(c=members(d=NUMBER))), {"a": [{"x": 1, "y": "z"}, {"x": 2}], "b": {"c": {"d": 1}}}),
    (members(a={"type": ["string", "number", "boolean", "array", "null"], "items": TEXT}), {"a": ["x", "y"]}),
    ({"type": "object", "additionalProperties": LIST}, {"k": [{"x": 1}], "l": []}),
    ({"type": "array", "items": {"type": "array", "items": NUMBER}}, [[1, 2.5], [], None]),
    (NUMBER, 1.5),
    (TEXT, "a/b\u2028"),
    ({}, {"any": [1, None]}),
)


@dataclass(frozen=True, slots=True)
class Subject:
    mapping: JsonMapping
    good: bytes
    row: pa.StructArray


@cache
def subject(index: int, *, is_cut: bool) -> Subject:
    schema, value = FAMILY[index]
    mapping = json_mapping(schema, options=MappingOptions(max_depth=1)) if is_cut else json_mapping(schema)
    good = json.dumps(value).encode()
    return Subject(mapping, good, mapping.decode(pa.array([good])))


def check(octets: bytes) -> None:
    """Raise AssertionError if a promise is broken."""
    if len(octets) < 2:
        return
    choice, payload = octets[1], octets[2:]
    tried = subject(octets[0] % len(FAMILY), is_cut=bool(choice & CUT))
    prefix = PREFIX if choice & ENVELOPE else b""
    values = [prefix + payload] if choice & ALONE else [tried.good, prefix + payload, None, tried.good]
    column = 0 if choice & ALONE else 1
    lengths = np.zeros(len(values), np.int32)
    lengths[column] = len(prefix)
    rows = tried.mapping.decode(exact_binary(values, large=bool(choice & LARGE)), prefix_lengths=lengths)
    rows.validate(full=True)
    assert tried.mapping.encode(rows).to_pylist() == values
    error = rows.field("__err__")[column].as_py()
    if error is not None:
        assert 0 <= int(error.partition("@")[2]) <= len(values[column] or b"")
    if payload.count(b"[") + payload.count(b"{") < SURELY_READ // 2 and not (error or "").startswith("other_type"):
        assert is_json(payload) == (error is None), error
    if not choice & ALONE:
        for row in (0, 3):
            assert same_row(rows.slice(row, 1), tried.row)


def same_row(row: pa.StructArray, expected: pa.StructArray) -> bool:
    """Compare without forms: the last values' order of members may be part of one."""
    return all(
        row.field(field.name).equals(expected.field(field.name)) for field in row.type if field.name != "__form__"
    )


def seeds() -> Iterator[bytes]:
    for index, (_, value) in enumerate(FAMILY):
        for choice, write in enumerate(WRITERS):
            yield bytes([index, choice]) + write(value).encode()
            yield bytes([index, choice | ALONE]) + write(value).encode()
        yield bytes([index, 0]) + json.dumps(value).encode()[:-1]
        for seed in range(3):
            yield bytes([index, seed]) + SeededChoices(seed).data(10 + 10 * seed)
    for odd in (*NOT_JSON, *ODD_OBJECTS):
        yield bytes([0, 0]) + odd
    for text in (*NUMBERS, *TEXTS):
        octets = text.encode()
        yield bytes([1, 0]) + b'{"b":%s,"c":%s,"a":%s,"m":%s}' % (octets, octets, octets, octets)
        yield bytes([3, 0]) + b'{"a":%s}' % octets
        yield bytes([5, 0]) + b"[[%s]]" % octets
        yield bytes([6, 0]) + octets
        yield bytes([7, 0]) + octets
    yield bytes([8, 0]) + b"[" * 1_001 + b"]" * 1_001
