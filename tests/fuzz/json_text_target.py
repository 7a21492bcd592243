"""Fuzz target: texts in JSON columns, against Python's json and upb.

The first byte chooses the type.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import pyarrow as pa
from google.protobuf import struct_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass

from schema_mapping import MappingOptions, MessageMapping, compile_mapping
from schema_mapping.errors import KernelError
from tests.fuzz.choices import FuzzedChoices
from tests.fuzz.exact import exact_binary
from tests.support.schemas.judged_well_known import plain_json
from tests.support.schemas.random_schemas import pool_of

NOTHING = object()
KINDS = ("Value", "Struct", "ListValue")
SURELY_TAKEN = 20
"""No text is limited to this many levels."""

EXAMPLES = (
    ' { "a" : [ 1 , 2.50 , -3E+2 ] ,\n"b":{ "" : null } } ',
    '{"\\u00e9\\ud83d\\ude00\\/\\b\\f\\n\\r\\t\\"\\\\":"\\u0000\\u001F"}',
    '{"a":0.1e1,"b":12345678901234567890123,"c":1e-400,"d":-0.0,"e":5e-324,"f":1.7976931348623157e308}',
    '{"a":1,"b":{"a":2,"a":[]},"a":"\u00e9\U0001f600\u2028\x7f"}',
    '[true,false,null,"",0,-1,1.5e-7,123456789.123,9007199254740993,0.3]',
    "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
    '["\\ud800"]',
    "[1e999]",
    "[01]",
    "[1,]",
    '{"a":}',
    "nul",
    '"\x01"',
)


@cache
def subject() -> tuple[MessageMapping, Any]:
    file = FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    file.dependency.append(struct_pb2.DESCRIPTOR.name)
    message = file.message_type.add(name="M")
    for number, kind in enumerate(KINDS, 1):
        message.field.add(name=kind.lower(), number=number, label=1, type=11, type_name=f".google.protobuf.{kind}")
    descriptor = pool_of(file).FindMessageTypeByName("t.M")
    return compile_mapping(descriptor, options=MappingOptions(well_known_types="native")), GetMessageClass(descriptor)


def check(octets: bytes) -> None:
    choices = FuzzedChoices(octets)
    kind = KINDS[choices.integer(0, 255) % len(KINDS)]
    text = choices.rest().decode(errors="replace").encode()
    mapping, message = subject()
    try:
        said = content(text)
        is_json = {"Value": True, "Struct": isinstance(said, dict), "ListValue": isinstance(said, list)}[kind]
    except (ValueError, OverflowError, RecursionError):
        said, is_json = None, False
    try:
        (value,) = mapping.encode(row_with(mapping, kind, text)).to_pylist()
    except KernelError:
        assert not is_json or depth(said) > SURELY_TAKEN, "JSON is refused"
        return
    assert is_json, "what is no JSON is taken"
    assert comparable(plain_json(getattr(message.FromString(value), kind.lower()), unset=NOTHING)) == comparable(said)
    rows = mapping.decode(pa.array([value], pa.binary()))
    rows.validate(full=True)
    assert mapping.encode(rows).to_pylist() == [value], "bytes are lost"
    again = rows.field(kind.lower())[0].as_py()
    assert comparable(content(again.encode())) == comparable(said)


def row_with(mapping: MessageMapping, kind: str, text: bytes) -> pa.StructArray:
    rows = mapping.decode(pa.array([b""], pa.binary()))
    texts = exact_binary([text]).view(pa.string())
    columns = [texts if field.name == kind.lower() else rows.field(index) for index, field in enumerate(rows.type)]
    return pa.StructArray.from_arrays(columns, fields=list(rows.type))


def content(text: bytes) -> Any:
    """Parse with all numbers as doubles. Raises ValueError and the like if a message can't hold it."""
    value = json.loads(text.decode(), parse_int=_finite, parse_float=_finite, parse_constant=_refused)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise OverflowError(text)
    return number


def _refused(text: str) -> None:
    raise ValueError(text)


def comparable(said: Any) -> Any:
    """Turn doubles into bits: zeros have signs."""
    match said:
        case dict():
            return {name: comparable(item) for name, item in said.items()}
        case list():
            return [comparable(item) for item in said]
        case float():
            return struct.pack("<d", said)
        case _:
            return said


def depth(said: Any) -> int:
    inner = said.values() if isinstance(said, dict) else said if isinstance(said, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def seeds() -> Iterator[bytes]:
    for text in EXAMPLES:
        for kind in range(len(KINDS)):
            yield bytes([kind]) + text.encode()
