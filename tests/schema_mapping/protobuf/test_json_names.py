"""Fields with one JSON name."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from schema_mapping import compile_mapping
from schema_mapping.protobuf.descriptors import find_descriptor
from schema_mapping.protobuf.json_values import as_json
from tests.support.schemas.proto_text import compile_text

FIELDS = "optional string eventType = 1; optional string event_type = 2; optional int32 foo_bar = 3;"
OPTION = "option deprecated_legacy_json_field_conflicts = true;"
VALUE = b"\x0a\x01a\x12\x01b\x18\x01\x20\x02"
BODIES = {
    f"{FIELDS} optional int32 foo__bar = 4;": {"eventType": "a", "event_type": "b", "foo_bar": 1, "foo__bar": 2},
    f"{FIELDS} optional int32 Other = 4;": {"eventType": "a", "event_type": "b", "fooBar": 1, "Other": 2},
    f'{FIELDS} optional int32 x = 4 [json_name = "event_type"];': {
        "eventType": "a",
        "event_type": "b",
        "fooBar": 1,
        "x": 2,
    },
    "optional string a_b_c = 1; optional string a_bC = 2; optional int32 aB_c = 3; optional int32 d_e = 4;": {
        "a_b_c": "a",
        "a_bC": "b",
        "aB_c": 1,
        "dE": 2,
    },
}


@pytest.mark.parametrize("option", ["", OPTION])
@pytest.mark.parametrize(("body", "shown"), BODIES.items())
def test_fields_with_one_name(option: str, body: str, shown: dict[str, object]) -> None:
    source = compile_text(f'syntax = "proto2"; package t; message M {{ {option} {body} }}')
    mapping = compile_mapping(find_descriptor(source))
    rows = mapping.decode(pa.array([VALUE], pa.binary()))
    assert mapping.encode(rows).to_pylist() == [VALUE]
    assert rows.field("__unrecognized__").to_pylist() == [None]
    assert json.loads(as_json(source, VALUE)) == shown


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_names_given_twice(syntax: str) -> None:
    fields = 'optional int32 a = 1 [json_name = "x"]; optional int32 b = 2 [json_name = "x"]; optional int32 c_d = 3;'
    nested = f"message N {{ {OPTION} {fields} }} optional N n = 1;"
    source = compile_text(f'syntax = "{syntax}"; package t; message M {{ {nested} }}')
    assert json.loads(as_json(source, b"\x0a\x06\x08\x01\x10\x02\x18\x03")) == {"n": {"a": 1, "b": 2, "cD": 3}}
