"""Each Avro type: column, value and bytes (docs/type-mapping.md)."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest

from tests.support.schemas.strategies_avro import mapping_of

UUID_TEXT = "0dd0e0a0-8be9-4c7f-8e9f-aa7dbe5a60f2"
UTC = pa.timestamp("us", tz="UTC")


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **more}


def text(value: str) -> bytes:
    return bytes([2 * len(value)]) + value.encode()


CASES: dict[str, tuple[Any, bytes, pa.DataType, Any]] = {
    "boolean": ("boolean", b"\1", pa.bool_(), True),
    "int": ("int", b"\x03", pa.int32(), -2),
    "long": ("long", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", pa.int64(), 2**63 - 1),
    "float": ("float", struct.pack("<f", -0.0), pa.float32(), -0.0),
    "double": ("double", struct.pack("<d", 1.5), pa.float64(), 1.5),
    "string": ("string", text("hi"), pa.string(), "hi"),
    "bytes": ("bytes", b"\x04\xff\x00", pa.binary(), b"\xff\0"),
    "enum": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\2", pa.string(), "B"),
    "fixed": (fixed(3), b"abc", pa.binary(3), b"abc"),
    "long fixed": (fixed(5_000), b"x" * 5_000, pa.binary(), b"x" * 5_000),
    "date": (logical("int", "date"), b"\2", pa.date32(), 1),
    "time-millis": (logical("int", "time-millis"), b"\4", pa.time64("us"), 2_000),
    "time-micros": (logical("long", "time-micros"), b"\4", pa.time64("us"), 2),
    "timestamp-millis": (logical("long", "timestamp-millis"), b"\3", UTC, -2_000),
    "timestamp-micros": (logical("long", "timestamp-micros"), b"\3", UTC, -2),
    "timestamp-nanos": (logical("long", "timestamp-nanos"), b"\3", pa.int64(), -2),
    "local-timestamp-millis": (logical("long", "local-timestamp-millis"), b"\3", pa.timestamp("us"), -2_000),
    "local-timestamp-micros": (logical("long", "local-timestamp-micros"), b"\3", pa.timestamp("us"), -2),
    "uuid": (logical("string", "uuid"), text(UUID_TEXT), pa.uuid(), bytes.fromhex(UUID_TEXT.replace("-", ""))),
    "fixed uuid": (fixed(16, logicalType="uuid"), bytes(range(16)), pa.uuid(), bytes(range(16))),
    "duration": (fixed(12, logicalType="duration"), bytes(12), pa.binary(12), bytes(12)),
    "decimal": (logical("bytes", "decimal", precision=4, scale=2), b"\4\xfb\x2e", pa.decimal128(4, 2), -1234),
    "fixed decimal": (fixed(3, logicalType="decimal", precision=4), b"\xff\xfb\x2e", pa.decimal128(4, 0), -1234),
    "wide fixed decimal": (
        fixed(20, logicalType="decimal", precision=38),
        b"\xff" * 18 + b"\xfb\x2e",
        pa.decimal128(38, 0),
        -1234,
    ),
    "decimal of too many digits": (logical("bytes", "decimal", precision=39), b"\2\1", pa.binary(), b"\1"),
}


def column(schema: Any, value: bytes) -> tuple[pa.Array, dict[str, Any]]:
    mapping = mapping_of({"type": "record", "name": "R", "fields": [{"name": "f", "type": ["null", schema]}]})
    values = [b"\0", b"\2" + value]
    rows = mapping.decode(pa.array(values, pa.binary()))
    rows.validate(full=True)
    assert mapping.encode(rows).to_pylist() == values
    assert not rows.field("f")[0].is_valid
    return rows.field("f"), _row(rows)


def _row(rows: pa.StructArray) -> dict[str, Any]:
    return {name: rows.field(name)[1].as_py() for name in ("__raw__", "__err__", "__form__")}


def stored(array: pa.Array) -> Any:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_decimal(array.type):
        return int(array[1].as_py().scaleb(array.type.scale))
    if pa.types.is_temporal(array.type):
        return array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())[1].as_py()
    return array[1].as_py()


@pytest.mark.parametrize("name", CASES)
def test_type_is_a_column(name: str) -> None:
    schema, value, kind, shown = CASES[name]
    array, row = column(schema, value)
    assert (array.type, stored(array)) == (kind, shown)
    assert row == {"__raw__": None, "__err__": None, "__form__": None}


LOOSE: dict[str, tuple[Any, bytes, Any]] = {
    "long varint": ("long", b"\x82\x00", 1),
    "int beyond 32 bits": ("int", b"\x82\x80\x80\x80\x10", 1),
    "boolean 2": ("boolean", b"\2", False),
    "bytes after the value": ("int", b"\2\2", 1),
    "text that isn't UTF-8": ("string", b"\x04a\xff", "a\ufffd"),
    "date too early": (logical("int", "date"), b"\xff\xff\xff\xff\x0f", None),
    "time of another day": (logical("int", "time-millis"), b"\x01", None),
    "time beyond the year 9999": (
        logical("long", "timestamp-millis"),
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        None,
    ),
    "uuid with large letters": (logical("string", "uuid"), text(UUID_TEXT.upper()), None),
    "text that is no uuid": (logical("string", "uuid"), text("x"), None),
    "decimal with sign bytes": (logical("bytes", "decimal", precision=4), b"\4\x00\x01", 1),
    "decimal without bytes": (logical("bytes", "decimal", precision=4), b"\0", None),
    "decimal of more digits": (logical("bytes", "decimal", precision=1), b"\2\x0a", None),
    "block by block": ({"type": "array", "items": "int"}, b"\2\2\2\4\0", [1, 2]),
    "key twice": ({"type": "map", "values": "int"}, b"\6\2a\2\2b\4\2a\6\0", [("b", 2), ("a", 3)]),
}


@pytest.mark.parametrize("name", LOOSE)
def test_other_bytes_of_a_value_are_kept_raw(name: str) -> None:
    schema, value, shown = LOOSE[name]
    array, row = column(schema, value)
    assert array[1].as_py() == shown if not pa.types.is_decimal(array.type) else stored_or_null(array) == shown
    assert row == {"__raw__": b"\2" + value, "__err__": None, "__form__": None}


def stored_or_null(array: pa.Array) -> int | None:
    return stored(array) if array[1].is_valid else None


FAILING: dict[str, tuple[Any, bytes, str]] = {
    "nothing": ("int", b"", "truncated@1"),
    "varint of eleven bytes": ("long", b"\x80" * 10 + b"\1", "bad_varint@1"),
    "int of six bytes": ("int", b"\x80" * 5 + b"\1", "bad_varint@1"),
    "branch outside": (["int", "string"], b"\x04", "bad_union@1"),
    "negative branch": (["int", "string"], b"\x01", "bad_union@1"),
    "symbol outside": ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\2", "bad_enum@1"),
    "negative length": ("string", b"\x01", "bad_length@1"),
    "length beyond the end": ("bytes", b"\x04a", "truncated@1"),
    "cut double": ("double", b"1234567", "truncated@1"),
    "cut fixed": (fixed(3), b"ab", "truncated@1"),
    "count beyond the end": ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\x0f\2", "truncated@1"),
    "lowest count": ({"type": "array", "items": "int"}, b"\xff" * 9 + b"\1\0", "bad_count@1"),
    "items without bytes": ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f\0", "too_large@1"),
}


@pytest.mark.parametrize("name", FAILING)
def test_unreadable_value_has_a_code_and_its_place(name: str) -> None:
    schema, value, code = FAILING[name]
    if isinstance(schema, list):
        mapping = mapping_of(
            {"type": "record", "name": "R", "fields": [{"name": "i", "type": "int"}, {"name": "f", "type": schema}]}
        )
    else:
        mapping = mapping_of({"type": "record", "name": "R", "fields": [{"name": "f", "type": ["null", schema]}]})
    good = b"\0" if not isinstance(schema, list) else b"\0\0\0"
    values = [good, b"\2" + value, good]
    rows = mapping.decode(pa.array(values, pa.binary()))
    rows.validate(full=True)
    assert mapping.encode(rows).to_pylist() == values
    assert rows.field("__err__").to_pylist() == [None, code, None]
    assert rows.field("__raw__").to_pylist() == [None, values[1], None]
    assert rows[0] == rows[2]


def test_nan_bits_survive() -> None:
    mapping = mapping_of({"type": "record", "name": "R", "fields": [{"name": "f", "type": "double"}]})
    values = [struct.pack("<Q", bits) for bits in (0x7FF8000000000001, 0x7FF0000000000123, 0xFFF8000000000000)]
    rows = mapping.decode(pa.array(values, pa.binary()))
    assert mapping.encode(rows).to_pylist() == values
    assert rows.field("__raw__").null_count == len(values)
