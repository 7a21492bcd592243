"""Many rows of numbers and texts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import compile_mapping
from schema_mapping.errors import KernelError
from schema_mapping.protobuf.encode import encode
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.proto_text import descriptor_of

NUMBERS = (
    *("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "double", "float"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64", "E"),
)
TYPES = (*NUMBERS, "string", "bytes")
PLACES = (1, 17, 3000, 400_000, 70_000_000)
COUNT = 700


def flat_type(presence: str) -> Descriptor:
    fields = " ".join(
        f"{presence} {kind} f{position + number} = {position + number};"
        for position in PLACES
        for number, kind in enumerate(TYPES if position < 70_000_000 else ("int64", "string"))
    )
    return descriptor_of(f"message M {{ {fields} }} enum E {{ NONE = 0; SOME = 1; LESS = -5; }}")


def drawn(draw: random.Random, kind: str) -> Any:
    bits = draw.choice((0, 1, 6, 7, 8, 28, 31, 31, 55, 56, 63))
    text = "x\u20ac" * draw.choice((0, 1, 3, 4, 8, 11, 30, 300)) + "y" * draw.randrange(3)
    whole = draw.getrandbits(bits)
    half = draw.getrandbits(min(bits, 31))
    sign = draw.choice((-1, 1))
    values = {
        "string": text,
        "bytes": text.encode(),
        "double": draw.choice((0.0, -0.0, 1.5, -3.25)),
        "float": draw.choice((0.0, -0.0, 1.5, -3.25)),
        "bool": draw.random() < 0.5,
        "E": draw.choice((0, 1, -5, 77, -77)),
        "uint64": 2 * whole + 1,
        "fixed64": 2 * whole + 1,
        "uint32": 2 * half + 1,
        "fixed32": 2 * half + 1,
    }
    return values.get(kind, sign * (whole if kind.endswith("64") else half))


def values_of(kind: Descriptor, seed: int, count: int, share: float) -> list[bytes]:
    draw = random.Random(seed)
    types = {f"f{position + number}": name for position in PLACES for number, name in enumerate(TYPES)}
    types |= {f"f{PLACES[-1]}": "int64", f"f{PLACES[-1] + 1}": "string"}
    make = GetMessageClass(kind)
    return [
        make(
            **{field.name: drawn(draw, types[field.name]) for field in kind.fields if draw.random() < share}
        ).SerializeToString()
        for _ in range(count)
    ]


@pytest.mark.parametrize("share", [0.03, 0.6, 1.0])
@pytest.mark.parametrize("presence", ["", "optional"])
def test_every_type(presence: str, share: float) -> None:
    kind = flat_type(presence)
    mapping = compile_mapping(kind)
    values = pa.array(values_of(kind, 3, COUNT, share), pa.binary())
    rows = mapping.decode(values)
    assert rows.field("__raw__").null_count == COUNT
    assert mapping.encode(rows).equals(values)
    for start, length in ((1, COUNT - 1), (13, 8), (100, 7), (5, 129), (COUNT - 9, 9)):
        part = slice(start, start + length)
        assert mapping.encode(rows[part]).equals(values[part])


@pytest.mark.parametrize("every", [2, 9, 50])
def test_rows_that_stand_apart(every: int) -> None:
    kind = flat_type("")
    mapping = compile_mapping(kind)
    values: list[bytes | None] = list(values_of(kind, 5, COUNT, 0.2))
    apart: tuple[bytes | None, ...] = (None, b"", b"\x08\x81\x00", b"\x08", b"\xa2\x06\x01q", b"\x12\x80")
    for position in range(0, COUNT, every):
        values[position] = apart[position // every % len(apart)]
    column = pa.array(values, pa.binary())
    rows = mapping.decode(column)
    assert mapping.encode(rows).equals(column)
    assert mapping.encode(rows[3:]).equals(column[3:])


def test_envelopes_and_unknown_fields() -> None:
    kind = flat_type("")
    mapping = compile_mapping(kind)
    draw = random.Random(9)
    tails = (b"", b"\xfa\xff\xff\xff\x0f\x03abc", b"\xf8\xff\xff\xff\x0f\x01")
    heads = [draw.randbytes(draw.choice((0, 5, 5, 6))) for _ in range(COUNT)]
    values = [
        head + value + draw.choice(tails) for head, value in zip(heads, values_of(kind, 8, COUNT, 0.3), strict=True)
    ]
    column = pa.array(values, pa.binary())
    rows = mapping.decode(column, prefix_lengths=np.array([len(head) for head in heads], np.int32))
    assert rows.field("__raw__").null_count == COUNT
    assert rows.field("__unrecognized__").null_count < COUNT
    assert mapping.encode(rows).equals(column)


def test_long_texts_among_short_ones() -> None:
    kind = descriptor_of("message M { int32 a = 1; string s = 2; bytes t = 3; }")
    mapping, make, draw = compile_mapping(kind), GetMessageClass(kind), random.Random(1)
    sizes = (0, 1, 15, 16, 17, 31, 32, 33, 127, 128, 129, 600, 16_384, 200_000)
    values = [
        make(a=draw.randrange(300), s="s" * draw.choice(sizes[: 3 + i % 12]), t=b"t" * draw.choice(sizes[:9]))
        for i in range(COUNT)
    ]
    column = pa.array([value.SerializeToString() for value in values], pa.binary())
    assert mapping.encode(mapping.decode(column)).equals(column)


def test_no_fields() -> None:
    mapping = compile_mapping(descriptor_of("message M {}"))
    values = pa.array([b"", b"\x08\x01", None] * 20)
    assert mapping.encode(mapping.decode(values)).equals(values)


def enum_rows(mapping: MessageMapping, wrong: tuple[int, ...]) -> pa.StructArray:
    names = [{"e": "A", "n": row} for row in range(300)]
    for row in wrong:
        names[row]["e"] = "B"
    return pa.array(names, mapping.arrow_type)


def test_the_last_row_with_a_wrong_name_is_named() -> None:
    mapping = compile_mapping(descriptor_of("message M { E e = 1; int32 n = 2; } enum E { Z = 0; A = 5; }"))
    assert encode(enum_rows(mapping, ()), mapping.program).to_pylist()[7] == b"\x08\x05\x10\x07"
    with pytest.raises(KernelError, match="neither a name") as caught:
        encode(enum_rows(mapping, (3, 150, 151)), mapping.program)
    assert caught.value.context == {"row": 151, "field_number": 1}


def test_nulls_of_others_are_not_written() -> None:
    # A reader of Parquet may give nulls where decoding gives defaults.
    mapping = compile_mapping(descriptor_of("message M { int64 n = 1; string s = 2; bool b = 3; double d = 4; }"))
    rows = pa.array(
        [{"n": 5, "s": "x", "b": True, "d": 1.0} if row % 3 else {} for row in range(100)], mapping.arrow_type
    )
    written = encode(rows, mapping.program).to_pylist()
    assert {value for row, value in enumerate(written) if row % 3 == 0} == {b""}
    assert len({value for row, value in enumerate(written) if row % 3}) == 1
