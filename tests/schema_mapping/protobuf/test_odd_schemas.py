"""Schemas at Protobuf's limits, compared with upb."""

from __future__ import annotations

import keyword
from collections.abc import Sequence

import pytest
from google.protobuf.descriptor import Descriptor

from schema_mapping import compile_mapping
from schema_mapping.protobuf.kernel.tables import OPS
from schema_mapping.protobuf.message_mapping import MessageMapping
from schema_mapping.protobuf.table_rows import NO_FIELD, FieldRow, NodeRow, SpaceRow, field_arrays
from tests.support.schemas.kernel_check import check_upb_is_canonical, check_values
from tests.support.schemas.proto_text import descriptor_of
from tests.support.schemas.random_choices import SeededChoices
from tests.support.schemas.random_payloads import random_payload

LARGEST = (1 << 29) - 1
SQL_WORDS = ("select", "from", "table", "order", "group", "where", "key", "value", "element", "partition", "offset")

ALIASES = """syntax = "proto2"; package t;
enum E { option allow_alias = true; NONE = 0; ZERO = 0; ONE = 1; UNO = 1; LESS = -1; MINUS = -1; }
enum Far { LOWEST = -2147483648; HIGHEST = 2147483647; }
message M { optional E one = 1; repeated E many = 2 [packed = true]; map<int32, E> by = 3; optional Far far = 4; }
"""
GROUPS = """syntax = "proto2"; package t;
message M {
  optional group One = 1 { optional int32 a = 1; optional group Deep = 2 { optional string b = 1; } }
  repeated group Many = 500 { repeated group Inner = 1 { optional int64 c = 3; } }
  oneof choice { group Left = 7 { optional int32 d = 1; } int32 right = 8; }
}
"""


def judged_by_upb(descriptor: Descriptor) -> MessageMapping:
    choices = SeededChoices(5)
    values = [random_payload(choices, descriptor) for _ in range(120)]
    check_values(descriptor, values)
    check_upb_is_canonical(descriptor, values)
    return compile_mapping(descriptor)


def fields_named(mapping: MessageMapping) -> list[str]:
    return [name for name in mapping.arrow_type.names if name not in ("__prefix__", "__raw__", "__err__", "__form__")][
        :-1
    ]


def test_aliases_show_the_first_name() -> None:
    mapping = judged_by_upb(descriptor_of(ALIASES))
    assert mapping.root.fields[0].enum is not None
    assert dict(mapping.root.fields[0].enum.names) == {0: "NONE", 1: "ONE", -1: "LESS"}


def test_groups() -> None:
    mapping = judged_by_upb(descriptor_of(GROUPS))
    assert fields_named(mapping) == ["one", "left", "right", "many"]


def test_reserved_words_are_names() -> None:
    words = [*SQL_WORDS, *(word for word in keyword.kwlist if word not in SQL_WORDS)]
    body = " ".join(f"int32 {word} = {number};" for number, word in enumerate(words, start=1))
    mapping = judged_by_upb(descriptor_of(f"message M {{ {body} }}"))
    assert fields_named(mapping) == words


def test_names_that_differ_by_case_or_are_ours() -> None:
    text = """
        message M { int32 _lead = 1; int32 A_ = 2; int32 a_ = 3; string __raw__ = 4; string __Err__ = 5; N n = 6; }
        message N { int32 __unrecognized__ = 1; int32 UPPER = 2; int32 upper = 3; }"""
    mapping = judged_by_upb(descriptor_of(text))
    assert fields_named(mapping) == ["_lead", "A_", "a__3", "__raw___4", "__Err___5", "n"]
    assert [field.name for field in mapping.arrow_type.field("n").type] == [
        *("__unrecognized___1", "UPPER", "upper_3", "__unrecognized__")
    ]


def test_json_names_name_nothing() -> None:
    mapping = judged_by_upb(descriptor_of('message M { int32 snake_case = 1 [json_name = "x.y"]; int32 other = 2; }'))
    assert fields_named(mapping) == ["snake_case", "other"]


@pytest.mark.parametrize(
    "text",
    [
        "message M {}",
        "message M { N n = 1; repeated N many = 2; map<string, N> by = 3; } message N {}",
        "message M { oneof o { N a = 1; N b = 2; } } message N { O o = 1; } message O {}",
    ],
)
def test_messages_without_fields(text: str) -> None:
    judged_by_upb(descriptor_of(text))


def test_six_hundred_fields() -> None:
    kinds = ("int32", "string", "repeated sint64", "double", "optional bool", "map<string, int32>", "N")
    body = " ".join(f"{kinds[number % len(kinds)]} f{number} = {number};" for number in range(1, 601))
    mapping = judged_by_upb(descriptor_of(f"message M {{ {body} }} message N {{ int32 x = 1; }}"))
    assert len(mapping.root.fields) == 600


def test_numbers_as_far_as_they_go() -> None:
    mapping = judged_by_upb(descriptor_of(f"message M {{ int32 first = 1; string last = {LARGEST}; }}"))
    assert [field.number for field in mapping.root.fields] == [1, LARGEST]


@pytest.mark.parametrize(
    ("numbers", "largest_lookup"),
    [((1, LARGEST), 100), (range(1, 601), 601), (range(1, LARGEST, LARGEST // 2_000), 100), ((LARGEST,), 100)],
)
def test_lookup_grows_with_fields_and_not_with_their_numbers(numbers: Sequence[int], largest_lookup: int) -> None:
    fields = [NO_FIELD, *(FieldRow(number=number, op=OPS["INT32"], home=0) for number in numbers)]
    arrays = field_arrays(fields, [NodeRow(home=0, first=1, count=len(numbers))], [SpaceRow()])
    assert arrays["lookup"].size <= largest_lookup


def test_far_numbers_are_found() -> None:
    numbers = [number for number in range(1, LARGEST, LARGEST // 300) if not 19_000 <= number < 20_000]
    body = " ".join(f"int32 f{number} = {number};" for number in numbers)
    assert len(judged_by_upb(descriptor_of(f"message M {{ {body} }}")).root.fields) == len(numbers)
