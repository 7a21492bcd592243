"""Guesses that `archiver init` writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.setup.samples import Look, Sampled, look_of, protobuf_fields


@pytest.mark.parametrize(
    ("data", "look"),
    [
        (None, Look.NULL),
        (b"", Look.EMPTY),
        (b'{"a": 1}', Look.JSON),
        (b" [1, 2]", Look.JSON),
        (b'{"a": ', Look.TEXT),
        (b"42", Look.TEXT),
        ("grün\n".encode(), Look.TEXT),
        (b"\x00\x00\x00\x00\x07\x00\x08\x01", Look.REGISTRY),
        (b"\x00\x00\x00\x00\x00\x00\x08\x01", Look.OTHER),
        (b"\xc3\x01abcdefgh", Look.SINGLE_OBJECT),
        (b"\xc3\x01abcdefg", Look.OTHER),
        (b"\x08\x96\x01\x12\x03abc", Look.PROTOBUF),
        (b"\x08\x96\x01\x12\x04abc", Look.OTHER),
        (b"\xff\xfe\x00", Look.OTHER),
        (b"[" * 100_000, Look.TEXT),
    ],
)
def test_looks(data: bytes | None, look: Look) -> None:
    assert look_of(data) is look


@given(st.binary(max_size=64))
def test_any_bytes_look_like_something(data: bytes) -> None:
    assert look_of(data) in Look


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        (b"\x08\x01\x15\x00\x00\x00\x00\x19\x00\x00\x00\x00\x00\x00\x00\x00\x22\x00", {1, 2, 3, 4}),
        (b"\x00\x01", None),
        (b"\x0b\x0c", None),
        (b"\x08" + b"\xff" * 11, None),
        (b"\x15\x00\x00", None),
    ],
)
def test_field_numbers(data: bytes, fields: set[int] | None) -> None:
    numbers = protobuf_fields(data)
    assert numbers == (None if fields is None else frozenset(fields))


def test_samples_add_up() -> None:
    sampled = Sampled.of([b"\x08\x01", b"\x12\x01a", None])
    assert sampled.looks == {Look.PROTOBUF: 2, Look.NULL: 1}
    assert (sampled.all_look, sampled.fields, sampled.schema_ids) == (Look.PROTOBUF, (1, 2), ())
    framed = Sampled.of([b"\x00\x00\x00\x00\x07\x00\x08\x01", b"\x00\x00\x00\x00\x03\x00\x08\x01"])
    assert (framed.all_look, framed.schema_ids) == (Look.REGISTRY, (3, 7))
    assert Sampled.of([b"a", b"{}"]).all_look is None
    assert Sampled.of([]).all_look is None
