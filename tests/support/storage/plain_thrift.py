"""Thrift's compact protocol in plain Python."""

from __future__ import annotations

from typing import Any

from archiver.storage.parquet.compact_thrift import (
    BINARY,
    BOOL,
    DOUBLE,
    I8,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    SET,
    STRUCT,
    UUID,
    Fields,
    ThriftError,
)

_FALSE = 2
_INTEGERS = (I16, I32, I64)
_DEEPEST = 12
_WORD_BITS = 64
_LONG_LIST = 15
_FIXED = {I8: 1, DOUBLE: 8, UUID: 16}


def read_struct(data: memoryview, at: int = 0, depth: int = 0) -> tuple[Fields, int]:
    """Raises ThriftError or IndexError."""
    if depth > _DEEPEST:
        raise ThriftError
    fields: Fields = {}
    identifier = 0
    while True:
        step = data[at]
        at += 1
        kind = step & 15
        if kind == 0:
            return fields, at
        if step >> 4:
            identifier += step >> 4
        else:
            identifier, at = _integer(data, at)
        identifier = (identifier + (1 << 15)) % (1 << 16) - (1 << 15)
        if kind in _INTEGERS:
            fields[identifier, kind], at = _integer(data, at)
        elif kind in (BOOL, _FALSE):
            fields[identifier, BOOL] = kind == BOOL
        else:
            fields[identifier, kind], at = _value(data, at, kind, depth)


def _value(data: memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind == BINARY:
        size, at = _varint(data, at)
        return _cut(data, at, size)
    if kind in (LIST, SET):
        return _list(data, at, depth + 1)
    if kind == MAP:
        return _map(data, at, depth + 1)
    if kind == STRUCT:
        return read_struct(data, at, depth + 1)
    if kind in _FIXED:
        return _cut(data, at, _FIXED[kind])
    raise ThriftError


def _list(data: memoryview, at: int, depth: int) -> tuple[tuple[int, list[Any]], int]:
    if depth > _DEEPEST:
        raise ThriftError
    kind, size = data[at] & 15, data[at] >> 4
    at += 1
    if size == _LONG_LIST:
        size, at = _varint(data, at)
    result: list[Any] = []
    read = _integer if kind in _INTEGERS else None
    for _ in range(size):
        value, at = read(data, at) if read else _element(data, at, kind, depth)
        result.append(value)
    return (kind, result), at


def _map(data: memoryview, at: int, depth: int) -> tuple[None, int]:
    if depth > _DEEPEST:
        raise ThriftError
    size, at = _varint(data, at)
    if size:
        kinds = data[at]
        at += 1
        for _ in range(size):
            _, at = _element(data, at, kinds >> 4, depth)
            _, at = _element(data, at, kinds & 15, depth)
    return None, at


def _element(data: memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (BOOL, _FALSE):
        return data[at] == BOOL, at + 1
    return _value(data, at, kind, depth)


def _cut(data: memoryview, at: int, size: int) -> tuple[memoryview, int]:
    if at + size > len(data):
        raise ThriftError
    return data[at : at + size], at + size


def _integer(data: memoryview, at: int) -> tuple[int, int]:
    result = data[at]
    at += 1
    if result & 0x80:
        result, at = _varint(data, at - 1)
    return (result >> 1) ^ -(result & 1), at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, _WORD_BITS, 7):
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return result % (1 << _WORD_BITS), at
    raise ThriftError
