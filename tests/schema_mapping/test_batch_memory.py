"""The rows of values decoded together are bounded."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from schema_mapping import LedgerState, assign, compile_mapping
from schema_mapping.avro.decode import decode as decode_avro
from schema_mapping.avro.schema import AvroSchema
from schema_mapping.errors import RowsTooLargeError
from schema_mapping.json.decode import decode as decode_json
from schema_mapping.protobuf.decode import decode as decode_protobuf
from tests.support.schemas.proto_text import descriptor_of
from tests.support.schemas.strategies_json import json_mapping

ITEMS = 100
ROOM = 64 << 10
RECORD = {
    "type": "record",
    "name": "R",
    "fields": [
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "I", "fields": [{"name": "a", "type": "long"}]},
            },
        }
    ],
}
Decode = Callable[[pa.Array], pa.StructArray]


def of_json() -> tuple[Decode, bytes]:
    item = {"type": "object", "properties": {"a": {"type": "integer"}}}
    program = json_mapping({"type": "object", "properties": {"items": {"type": "array", "items": item}}}).program
    value = json.dumps({"items": [{"a": number} for number in range(ITEMS)]}).encode()
    return lambda values: decode_json(values, replace(program, value_memory=ROOM)), value


def of_avro() -> tuple[Decode, bytes]:
    mapping: Any = assign(LedgerState(), value=AvroSchema.of(json.dumps(RECORD))).row.value
    output = io.BytesIO()
    fastavro.schemaless_writer(output, RECORD, {"items": [{"a": number} for number in range(ITEMS)]})
    return lambda values: decode_avro(values, replace(mapping.programs, value_memory=ROOM)), output.getvalue()


def of_protobuf() -> tuple[Decode, bytes]:
    text = 'syntax = "proto3"; package t; message I { int64 a = 1; } message M { repeated I items = 1; }'
    program = compile_mapping(descriptor_of(text, "t.M")).program
    value = b"".join(b"\x0a\x02\x08" + bytes([1 + number]) for number in range(ITEMS))
    return lambda values: decode_protobuf(values, replace(program, value_memory=ROOM)), value


@pytest.mark.parametrize("of_format", [of_json, of_avro, of_protobuf])
def test_values_that_fit_alone_are_split_together(of_format: Callable[[], tuple[Decode, bytes]]) -> None:
    decode, value = of_format()
    fitting = 1
    while fitting < 1_000:
        try:
            rows = decode(pa.array([value] * (fitting + 1)))
        except RowsTooLargeError as error:
            assert error.context["values"] == fitting + 1  # noqa: PT017 - the number isn't the same for all formats
            break
        assert rows.field("__err__").null_count == len(rows)
        fitting += 1
    assert 4 <= fitting < 200
    with pytest.raises(RowsTooLargeError, match="or their rows 1 GiB; decode fewer values at once"):
        decode(pa.array([value] * 1_000))
    alone = decode(pa.array([value]))
    assert [len(rows) for rows in alone.field("items").to_pylist()] == [ITEMS]


@pytest.mark.parametrize("of_format", [of_json, of_avro, of_protobuf])
def test_refused_values_take_no_memory(of_format: Callable[[], tuple[Decode, bytes]]) -> None:
    decode, value = of_format()
    rows = decode(pa.array([value[:-1]] * 2_000))
    assert rows.field("__err__").null_count == 0
