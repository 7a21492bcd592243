"""Thrift structs are read back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from archiver.storage.parquet.compact_thrift import (
    BINARY,
    BOOL,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    STRUCT,
    Fields,
    ThriftError,
    packed,
)
from archiver.storage.parquet.thrift_reader import read_struct
from tests.support.storage import plain_thrift

INTEGERS = {I16: 16, I32: 32, I64: 64}


def values(kind: int) -> some.SearchStrategy[Any]:
    if kind in INTEGERS:
        bits = INTEGERS[kind] - 1
        return some.integers(-(1 << bits), (1 << bits) - 1)
    return some.booleans() if kind == BOOL else some.binary(max_size=200)


def structs(inner: some.SearchStrategy[Fields]) -> some.SearchStrategy[Fields]:
    kinds = (BOOL, I16, I32, I64, BINARY)
    lists = some.one_of(
        *(some.tuples(some.just(kind), some.lists(values(kind), min_size=1, max_size=20)) for kind in kinds),
        some.tuples(some.just(STRUCT), some.lists(inner, min_size=1, max_size=20)),
    )
    valued = {**{kind: values(kind) for kind in kinds}, LIST: lists, STRUCT: inner}
    fields = some.one_of(
        *(some.tuples(some.tuples(some.integers(1, 40), some.just(kind)), value) for kind, value in valued.items())
    )
    return some.lists(fields, max_size=8, unique_by=lambda field: field[0][0]).map(dict)


def plain(value: Any) -> Any:
    match value:
        case memoryview():
            return bytes(value)
        case dict():
            return {field: plain(item) for field, item in value.items()}
        case (int() as kind, each):
            return kind, [plain(value) for value in (each[at] for at in range(len(each)))]
        case _:
            return value


@given(some.recursive(some.just({}), structs, max_leaves=12))
def test_what_is_packed_is_read(fields: Fields) -> None:
    data = memoryview(packed(fields))
    for read in (read_struct, plain_thrift.read_struct):
        result, end = read(data)
        assert (plain(result), end) == (fields, len(data))


def test_structs_may_be_packed_before() -> None:
    inner: Fields = {(3, I64): 7}
    assert packed({(1, STRUCT): packed(inner), (2, LIST): (STRUCT, [packed(inner)])}) == packed(
        {(1, STRUCT): inner, (2, LIST): (STRUCT, [inner])}
    )


def test_kinds_that_parquet_has_not_are_refused() -> None:
    with pytest.raises(ThriftError):
        packed({(1, MAP): {}})
