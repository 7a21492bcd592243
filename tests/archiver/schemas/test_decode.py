"""Values with envelopes become rows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor

from archiver.errors import BadSchema, SchemaRegistryUnavailable
from archiver.schemas.decode import decode_enveloped
from archiver.schemas.protobuf.message_choice import MessageChoice
from archiver.schemas.protobuf.registered_schema import Indexes
from archiver.schemas.registry.envelope import RegistryEnvelopes
from catalog.model import SchemaIdentity, SchemaNumber
from schema_mapping import LedgerState, UnionMapping, UnionSchema, assign, compile_mapping
from schema_mapping.protobuf.descriptors import closure
from tests.support.schemas.proto_text import descriptor_of
from tests.support.schemas.random_messages import damaged, random_message

NEW = descriptor_of("message M { int32 a = 1; repeated string b = 2; M c = 3; }")
OLD = descriptor_of("message M { int32 a = 1; repeated string b = 2; M c = 3; bytes extra = 9; }")
OTHER_TYPE = descriptor_of("message N { string a = 1; }", "t.N")
MAPPING = compile_mapping(NEW)
FIRST, SECOND, UNKNOWN, OTHER, BROKEN, DOUBTFUL, DOWN = (b"\0\0\0\0" + bytes([at]) + b"\0" for at in range(1, 8))
MEANINGS = {1: {"t.M"}, 2: {"t.M"}, 4: {"t.N"}, 6: {"t.M", "t.N"}}


@dataclass
class Ids:
    asked: list[int] = field(default_factory=list)

    def messages(self, schema_id: SchemaNumber, indexes: Indexes) -> frozenset[str] | None:
        del indexes
        self.asked.append(schema_id)
        match schema_id:
            case 5:
                raise BadSchema("protoc refuses it", schema_id=schema_id)
            case 7 | 8:
                raise SchemaRegistryUnavailable("it does not answer", url="http://nowhere")
            case _:
                return frozenset(MEANINGS[schema_id]) if schema_id in MEANINGS else None

    def learned(self, schema_ids: Iterable[SchemaNumber]) -> Mapping[SchemaIdentity, bytes]:
        return {SchemaIdentity(number): b"" for number in schema_ids}

    def with_schemas(self, schemas: Mapping[SchemaIdentity, bytes]) -> Ids:
        del schemas
        return self


def decode(
    values: list[bytes | None],
    kind: pa.DataType | None = None,
    *,
    mapping: object = MAPPING,
    messages: tuple[str, ...] = ("t.M",),
    coerce: bool = False,
) -> pa.StructArray:
    column = pa.array([b"no", *values], kind or pa.binary()).slice(1)
    rows = decode_enveloped(
        mapping, column, RegistryEnvelopes(choice=MessageChoice(messages=messages, ids=Ids()), coerce=coerce)
    )
    rows.validate(full=True)
    assert rows.type == mapping.arrow_type  # type: ignore[attr-defined]
    assert mapping.encode(rows).to_pylist() == values  # type: ignore[attr-defined]
    return rows


def message(descriptor: Descriptor, **fields: object) -> bytes:
    return message_factory.GetMessageClass(descriptor)(**fields).SerializeToString()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_every_fate(kind: pa.DataType) -> None:
    rows = decode(
        [
            FIRST + message(NEW, a=5, b=["x", "y"]),
            SECOND + message(OLD, a=6, extra=b"more"),
            UNKNOWN + message(NEW, a=7),
            OTHER + message(NEW, a=8),
            message(NEW, a=9),
            None,
            FIRST,
            FIRST + b"\x08",
            BROKEN + message(NEW, a=10),
            DOUBTFUL + message(NEW, a=11),
        ],
        kind,
    ).to_pylist()
    assert [row and row["a"] for row in rows] == [5, 6, None, None, None, None, 0, None, None, 11]
    assert [row and row["__prefix__"] for row in rows] == [
        *(FIRST, SECOND, None, None, None, None, FIRST, None, None, DOUBTFUL)
    ]
    assert [row and row["__err__"] for row in rows] == [
        *(None, None, "unknown_schema_id@1", "other_message@5", "bad_envelope@0", None, None),
        *("truncated@7", "bad_schema@1", None),
    ]
    whole = [row is not None and row["__raw__"] is not None for row in rows]
    assert whole == [False, False, True, True, True, False, False, True, True, False]
    assert rows[1]["__unrecognized__"] is not None
    assert {name for name, cell in rows[2].items() if cell is not None} == {"__raw__", "__err__"}


def test_all_refused() -> None:
    assert decode([b"", b"x", UNKNOWN], pa.binary()).field("__err__").to_pylist() == [
        *("bad_envelope@0", "bad_envelope@0", "unknown_schema_id@1")
    ]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_of_several_messages_the_envelope_says_which(kind: pa.DataType) -> None:
    made = assign(LedgerState(), value=UnionSchema(members=(closure(OTHER_TYPE), closure(NEW))))
    assert isinstance(made.row.value, UnionMapping)
    rows = decode(
        [
            FIRST + message(NEW, a=5),
            OTHER + message(OTHER_TYPE, a="five"),
            None,
            OTHER + b"\x08\x01",
            DOUBTFUL + message(NEW, a=1),
            UNKNOWN + b"x",
            message(NEW, a=9),
            OTHER + b"\x0a",
            FIRST,
        ],
        kind,
        mapping=made.row.value,
        messages=("t.N", "t.M"),
    ).to_pylist()
    assert [row and row["m"] and row["m"]["a"] for row in rows] == [5, *[None] * 7, 0]
    assert [row and row["n"] and row["n"]["a"] for row in rows] == [None, "five", None, "", *[None] * 5]
    assert rows[3]["n"]["__unrecognized__"] == b"\x08\x01"
    assert [row and row["__prefix__"] for row in rows] == [FIRST, OTHER, None, OTHER, *[None] * 4, FIRST]
    assert [row and row["__err__"] for row in rows] == [
        *(None, None, None, None, "ambiguous_message@5", "unknown_schema_id@1", "bad_envelope@0", "truncated@7", None)
    ]


def test_coerced_values_are_messages_as_they_are() -> None:
    rows = decode(
        [
            message(NEW, a=9, b=["x"]),
            FIRST + message(NEW, a=5),
            b"",
            None,
            b"\x08\x00",
            b"\x08",
            b"\xff\xff",
            b"\0",
            b"\0\0\0\0\1",
            b"\0" + message(NEW, a=9),
            UNKNOWN + message(NEW, a=9),
        ],
        coerce=True,
    ).to_pylist()
    assert [row and row["a"] for row in rows] == [9, 5, 0, None, 0, *[None] * 6]
    assert [row and row["__prefix__"] for row in rows] == [None, FIRST, *[None] * 9]
    assert [row and row["__raw__"] for row in rows[:5]] == [None, None, None, None, b"\x08\x00"]
    assert [row and row["__err__"] for row in rows] == [*[None] * 5, *["bad_envelope@0"] * 5, "unknown_schema_id@1"]
    for row in rows[5:]:
        assert {name for name, cell in row.items() if cell is not None} == {"__raw__", "__err__"}


@pytest.mark.parametrize("seed", range(4))
def test_no_message_begins_with_the_magic_byte(seed: int) -> None:
    parsed = message_factory.GetMessageClass(NEW)()
    for value in (b"\0", b"\0\0", b"\0" + bytes([seed]) * 5, b"\0" + message(NEW, a=seed)):
        with pytest.raises(Exception, match="Error parsing message"):
            parsed.ParseFromString(value)


def test_the_first_value_whose_id_cannot_be_asked_for_is_named() -> None:
    values = pa.array([FIRST, None, b"", b"\0\0\0\0\x08\0", DOWN, UNKNOWN, b"\0\0\0\0\x08\0"])
    ids = Ids()
    with pytest.raises(SchemaRegistryUnavailable, match="isn't known yet, and it does not answer") as caught:
        decode_enveloped(MAPPING, values, RegistryEnvelopes(choice=MessageChoice(messages=("t.M",), ids=ids)))
    assert caught.value.context == {"url": "http://nowhere", "row": 3, "schema_id": 8}
    assert sorted(ids.asked) == [1, 3, 7, 8]


def test_ids_that_mean_something_are_told() -> None:
    seen: set[int] = set()
    values = pa.array([FIRST, UNKNOWN, BROKEN, OTHER, FIRST + b"\x08", b"x"])
    decode_enveloped(MAPPING, values, RegistryEnvelopes(choice=MessageChoice(messages=("t.M",), ids=Ids())), seen=seen)
    assert seen == {1, 4}


@pytest.mark.parametrize("coerce", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_bytes_are_they_come_back(seed: int, coerce: bool) -> None:
    chosen = random.Random(seed)
    heads = (FIRST, SECOND, UNKNOWN, OTHER, BROKEN, FIRST[:5] + b"\x02\x02", b"", b"\0", FIRST[:3])
    values: list[bytes | None] = [
        chosen.choice(heads) + damaged(number, random_message(number, NEW).SerializeToString()) if number % 17 else None
        for number in range(400)
    ]
    rows = decode(values, coerce=coerce).to_pylist()
    for value, row in zip(values, rows, strict=True):
        if value is None:
            continue
        has_envelope = value[:1] == b"\0"
        assert (row["__err__"] is None) <= (has_envelope or coerce)
        if row["__err__"] is None:
            assert (row["__prefix__"] is not None) == has_envelope
