"""Rows of all engines in one form: JSON values, by the table's schema.

Structs are columns by name (`<name>_deleted_N` for an id); maps are sorted pairs; bytes are hex; floats are hex of
their exact value or `nan`; times are microseconds since 1970; decimals are integers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimestamptzType,
)

KAFKA = ("partition", "offset", "event_timestamp")
"""What the producer of a record knows of it; the other columns of `kafka` are the archiver's and the broker's."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_ID = re.compile(r"_deleted_\d+")


def canonical_rows(rows: Iterable[Mapping[str, Any]], schema: Schema, *, nulls: bool = True) -> list[dict[str, Any]]:
    """Without `nulls` a null struct has null members, and null lists and maps are empty."""
    types = {field.name: field.field_type for field in schema.fields}
    result = [{name: canonical(value, types[name], nulls=nulls) for name, value in row.items()} for row in rows]
    for row in result:
        row["kafka"] = {name: row["kafka"][name] for name in KAFKA}
    return sorted(result, key=lambda row: (row["kafka"]["partition"], row["kafka"]["offset"]))


def canonical(value: Any, kind: IcebergType, *, nulls: bool = True) -> Any:
    if value is None and (nulls or not isinstance(kind, (StructType, ListType, MapType))):
        return None
    match kind:
        case StructType():
            return _struct({} if value is None else value, kind, nulls=nulls)
        case ListType():
            return [canonical(item, kind.element_type, nulls=nulls) for item in value or ()]
        case MapType():
            pairs = [
                [canonical(key, kind.key_type), canonical(item, kind.value_type, nulls=nulls)]
                for key, item in _pairs(value or ())
            ]
            return sorted(pairs, key=lambda pair: json.dumps(pair[0]))
        case _:
            return _scalar(value, kind)


def _struct(value: Any, kind: StructType, *, nulls: bool) -> dict[str, Any]:
    names = [field.name for field in kind.fields]
    pairs = value.items() if isinstance(value, Mapping) else zip(names, value, strict=True)
    result = {_ID.sub("_deleted_N", name): value for name, value in pairs}
    expected = {_ID.sub("_deleted_N", field.name): field.field_type for field in kind.fields}
    assert set(result) <= set(expected), set(result) - set(expected)
    return {name: canonical(result.get(name), expected[name], nulls=nulls) for name in (result if nulls else expected)}


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    return [tuple(pair.values()) if isinstance(pair, Mapping) else tuple(pair) for pair in value]


def _scalar(value: Any, kind: IcebergType) -> Any:  # noqa: PLR0911 - one return for each kind of value
    match kind:
        case FloatType():
            return _float(float(np.float32(value)))
        case DoubleType():
            return _float(float(value))
        case BinaryType():
            return value.encode("utf-8", "surrogateescape").hex() if isinstance(value, str) else bytes(value).hex()
        case StringType():
            return value.decode() if isinstance(value, (bytes, bytearray)) else value
        case TimestamptzType():
            return _micros(value)
        case DecimalType():
            return int(value)
        case _:
            return value


def _float(value: float) -> str:
    return value.hex()


def _micros(value: Any) -> int:
    if isinstance(value, datetime):
        return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // _MICRO
    return int(value)
