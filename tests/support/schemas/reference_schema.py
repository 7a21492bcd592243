"""A message with every type of column, in three versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from tests.support.schemas.proto_text import descriptor_of

MESSAGE = "reference.All"
VERSIONS = (1, 2, 3)
UNKNOWN = b"\xf2\x3f\x03new"
"""A field of number 1022 that no version has."""
BROKEN = b"\x0a\x05ab"
NAN = float("nan")
INFINITY = float("inf")

_HEAD = """
syntax = "proto3"; package reference;
import "google/protobuf/duration.proto"; import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
enum Colour { NONE = 0; RED = 1; GREEN = -7; }
message Nothing {}
message Tree { int32 leaf = 1; Tree left = 2; repeated Tree others = 3; }
"""
_SCALARS = ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64")
_SCALARS += ("sfixed32", "sfixed64", "bool", "string", "bytes", "Colour")
_ALWAYS = """
  repeated google.protobuf.Timestamp times = 70; map<string, google.protobuf.Timestamp> times_by_name = 71;
  map<string, int64> longs_by_string = 61; map<int32, double> doubles_by_int32 = 62;
  map<bool, string> strings_by_bool = 63; map<uint64, bytes> bytes_by_uint64 = 64;
  map<string, Colour> colours_by_string = 65;
  Nothing nothing = 72; repeated Nothing nothings = 73; Tree tree = 74;
  oneof choice { string chosen_text = 75; Nothing chosen_nothing = 76; int64 chosen_number = 77; }
  Level1 nested = 80; repeated Item items = 81; map<string, Item> items_by_name = 82;
  google.protobuf.Timestamp at = 90; google.protobuf.Duration took = 91; google.protobuf.BoolValue bool_value = 92;
  google.protobuf.StringValue string_value = 93; google.protobuf.BytesValue bytes_value = 94;
  google.protobuf.UInt64Value uint64_value = 95; google.protobuf.DoubleValue double_value = 96;
  google.protobuf.Struct attributes = 97; google.protobuf.Value any = 98; google.protobuf.ListValue list = 99;
"""
_CHANGING = {
    1: "string before = 101; int32 widened = 102; float precise = 103; string removed = 104; string returning = 105; "
    "int32 retyped = 106; repeated int32 widths = 107; map<string, float> ratios = 108;",
    2: "string renamed = 101; int64 widened = 102; double precise = 103; "
    "string retyped = 106; repeated int64 widths = 107; map<string, double> ratios = 108; "
    "string added = 109; repeated string added_strings = 110; repeated Item added_items = 111; "
    "map<string, int32> added_map = 112; Nothing added_nothing = 113; Level2 added_struct = 114;",
}
_CHANGING[3] = _CHANGING[2] + "string returning = 105;"
_NESTED = {
    1: "int32 depth = 1; string before = 2; int32 widened = 3; string removed = 4;",
    2: "int32 depth = 1; string renamed = 2; int64 widened = 3; string added = 5; repeated string added_strings = 6;",
}
_NESTED[3] = _NESTED[2] + "string removed = 4; Nothing later = 7;"


def text(version: int) -> str:
    nested, changing = _NESTED[version], _CHANGING[version]
    plain = " ".join(f"{kind} a_{kind.lower()} = {number};" for number, kind in enumerate(_SCALARS, 1))
    optional = " ".join(f"optional {kind} maybe_{kind.lower()} = {number};" for number, kind in enumerate(_SCALARS, 21))
    several = " ".join(f"repeated {kind} many_{kind.lower()} = {number};" for number, kind in enumerate(_SCALARS, 41))
    return (
        f"{_HEAD} message Level1 {{ string name = 1; Level2 two = 2; }}"
        f" message Level2 {{ int32 n = 1; Level3 three = 2; }}"
        f" message Level3 {{ {nested} }}"
        f" message Item {{ string sku = 1; repeated string tags = 2; map<string, int64> counts = 3; Level3 deep = 4; }}"
        f" message All {{ {plain}\n{optional}\n{several}\n{_ALWAYS}\n{changing} }}\n"
    )


def descriptor(version: int) -> Descriptor:
    return descriptor_of(text(version), MESSAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    name: str
    version: int
    data: bytes | None
    message: Message | None


def sent(version: int) -> Iterator[Sent]:
    described = descriptor(version)
    for name, values in _VALUES.items():
        message = GetMessageClass(described)(**_known(described, values))
        data = message.SerializeToString(deterministic=True)
        if name == "unknown fields":
            data += UNKNOWN
            message = GetMessageClass(described).FromString(data)
        yield Sent(name=name, version=version, data=data, message=message)
    yield Sent(name="tombstone", version=version, data=None, message=None)
    yield Sent(name="broken", version=version, data=BROKEN, message=None)


def _known(described: Descriptor, values: Any) -> Any:
    existing = {}
    for name, value in values.items():
        field = described.fields_by_name.get(name)
        if field is None:
            continue
        below = field.message_type
        if below is None or below.full_name.startswith("google.protobuf."):
            existing[name] = _typed(field, value)
        elif below.GetOptions().map_entry:
            target = below.fields_by_name["value"].message_type
            inside = target is not None and not target.full_name.startswith("google.protobuf.")
            existing[name] = {key: _known(target, item) if inside else item for key, item in value.items()}
        elif field.is_repeated:
            existing[name] = [_known(below, item) for item in value]
        else:
            existing[name] = _known(below, value)
    return existing


def _typed(field: Any, value: Any) -> Any:
    # `retyped` is a number first, then a text.
    return str(value) if field.name == "retyped" and field.type == field.TYPE_STRING else value


def _scalars(prefix: str, *values: Any) -> dict[str, Any]:
    return {f"{prefix}_{kind.lower()}": value for kind, value in zip(_SCALARS, values, strict=True)}


_LOW = (-1.7976931348623157e308, -3.4028234663852886e38, -(2**31), -(2**63), 1, 1, -(2**31), -(2**63), 1, 1)
_LOW += (-(2**31), -(2**63), False, "\x00 a\"b'\\c\n", b"\x00", -7)
_HIGH = (1.7976931348623157e308, 3.4028234663852886e38, 2**31 - 1, 2**63 - 1, 2**32 - 1, 2**64 - 1, 2**31 - 1)
_HIGH += (2**63 - 1, 2**32 - 1, 2**64 - 1, 2**31 - 1, 2**63 - 1, True, "Zürich \U0001f600", bytes(range(256)))
_HIGH += (2**31 - 1,)
_ODD = (NAN, NAN, -1, -1, 2**31, 2**63, -1, -1, 2**31, 2**63, -1, -1, True, "", b"\xff\xfe", 99)
_ZERO = (-0.0, -0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, False, "", b"", 0)
_LEVEL3 = {
    "depth": 3,
    "before": "b",
    "renamed": "r",
    "widened": 5,
    "removed": "gone",
    "added": "a",
    "added_strings": ["x", ""],
    "later": {},
}
_ITEM = {"sku": "s", "tags": ["t", ""], "counts": {"": 0, "a": -1}, "deep": _LEVEL3}
_CHANGES = {
    "before": "b",
    "renamed": "r",
    "widened": -(2**31),
    "precise": 0.5,
    "removed": "gone",
    "returning": "back",
    "retyped": 17,
    "widths": [1, -2],
    "ratios": {"a": 0.25, "b": -0.0},
    "added": "a",
    "added_strings": ["", "x"],
    "added_items": [_ITEM, {}],
    "added_map": {"k": 1},
    "added_nothing": {},
    "added_struct": {"n": 2, "three": _LEVEL3},
}
_VALUES: Mapping[str, Mapping[str, Any]] = {
    "nothing set": {},
    "lowest": _scalars("a", *_LOW) | _scalars("maybe", *_LOW),
    "highest": _scalars("a", *_HIGH) | _scalars("maybe", *_HIGH),
    "odd": _scalars("a", *_ODD) | _scalars("maybe", *_ODD),
    "zeros": _scalars("maybe", *_ZERO) | {"a_double": -0.0, "a_float": -0.0},
    "infinite": {"a_double": INFINITY, "a_float": -INFINITY, "maybe_double": -INFINITY, "maybe_float": INFINITY},
    "lists": {
        f"many_{kind.lower()}": [_LOW[at], _HIGH[at], _ODD[at], _ZERO[at], _LOW[at]] for at, kind in enumerate(_SCALARS)
    },
    "maps": {
        "longs_by_string": {"": -(2**63), "ü": 2**63 - 1, "z": 0},
        "doubles_by_int32": {-(2**31): NAN, 0: -0.0, 2**31 - 1: -INFINITY},
        "strings_by_bool": {False: "no", True: ""},
        "bytes_by_uint64": {0: b"", 2**63: b"\xff", 2**64 - 1: b"\x00"},
        "colours_by_string": {"red": 1, "other": 42},
    },
    "nested": {
        "nested": {"name": "one", "two": {"n": 2, "three": _LEVEL3}},
        "items": [_ITEM, {}, {"sku": "2", "deep": {}}],
        "items_by_name": {"full": _ITEM, "": {}},
        "nothing": {},
        "nothings": [{}, {}],
        "tree": {"leaf": 1, "left": {"leaf": 2, "left": {}}, "others": [{"leaf": 3}, {}]},
        "chosen_nothing": {},
    },
    "half nested": {"nested": {"two": {}}, "tree": {}, "chosen_number": 0},
    "chosen": {"chosen_text": ""},
    "well known": {
        "at": {"seconds": 1_700_000_000, "nanos": 123_456_000},
        "took": {"seconds": -3, "nanos": -5_000},
        "bool_value": {"value": False},
        "string_value": {"value": ""},
        "bytes_value": {"value": b"\xff"},
        "uint64_value": {"value": 2**64 - 1},
        "double_value": {"value": -0.0},
        "attributes": {"a": [None, True, "x\n", {"deep": 0.5}]},
        "any": {"number_value": 1.0},
        "list": ["é", -0.25],
        "times": [{"seconds": 0}, {"seconds": 1, "nanos": 1_000}],
        "times_by_name": {"epoch": {"seconds": 0}},
    },
    "first year": {
        "at": {"seconds": -62_135_596_800},
        "took": {"seconds": -9_223_372_036_854, "nanos": -775_808_000},
        "times": [{"seconds": -62_135_596_800, "nanos": 1_000}],
        "any": {"null_value": 0},
    },
    "last year": {
        "at": {"seconds": 253_402_300_799, "nanos": 999_999_000},
        "took": {"seconds": 9_223_372_036_854, "nanos": 775_807_000},
        "times": [{"seconds": 253_402_300_799, "nanos": 999_999_000}],
        "any": {"list_value": {}},
    },
    "changed": {**_CHANGES, "items": [_ITEM], "nested": {"two": {"three": _LEVEL3}}},
    "unknown fields": {"a_string": "beside"},
}
