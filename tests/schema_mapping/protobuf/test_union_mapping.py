"""Several message types in one value."""

from __future__ import annotations

import pickle
import random
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.descriptor import Descriptor

from schema_mapping import (
    Assignment,
    LedgerState,
    MappingOptions,
    SourceSchema,
    UnionMapping,
    UnionSchema,
    assign,
    compile_mapping,
)
from schema_mapping.columns.unique_names import member_column
from schema_mapping.errors import DescriptorError, KernelError
from schema_mapping.outline import outline
from schema_mapping.protobuf.descriptors import closure, find_descriptor
from schema_mapping.row import row_mapping_from_json
from tests.support.schemas.proto_text import compile_text
from tests.support.schemas.random_messages import damaged, random_message
from tests.support.schemas.real_schemas import PACKAGES, messages

PLACED = """message Placed { int32 a = 1; repeated string b = 2; Money m = 3; Placed again = 4; }
message Money { int64 u = 1; }"""
GONE = "message Gone { string why = 1; Money m = 2; } message Money { int64 u = 1; string currency = 2; }"
EMPTY = 'syntax = "proto3"; package z; message Gone {}'


def source(text: str, message: str) -> SourceSchema:
    return compile_text(text, message)


MEMBERS = (source(PLACED, "t.Placed"), source(GONE, "t.Gone"), source(EMPTY, "z.Gone"))


def to(state: LedgerState, *members: SourceSchema, **options: object) -> Assignment:
    return assign(state, value=UnionSchema(members=members), options=MappingOptions(**options))  # type: ignore[arg-type]


def columns(assignment: Assignment) -> dict[str, int]:
    struct = assignment.iceberg_schema.find_type("val")
    return {field.name: field.field_id for field in struct.fields if not field.name.startswith("__")}


def decode(mapping: UnionMapping, values: list[bytes | None], which: list[int]) -> pa.StructArray:
    rows = mapping.decode(pa.array(values, pa.binary()), which=np.array(which, np.int16))
    rows.validate(full=True)
    assert rows.type == mapping.arrow_type
    return rows


def union_of(assignment: Assignment) -> UnionMapping:
    assert isinstance(assignment.row.value, UnionMapping)
    return assignment.row.value


def test_ids_are_equal_in_whatever_order_messages_stand() -> None:
    first = to(LedgerState(), *MEMBERS)
    assert list(columns(first)) == ["gone", "placed", "gone_3"]
    for order in permutations(MEMBERS):
        again = to(LedgerState(), *order)
        assert again.state == first.state
        assert to(first.state, *order).version == 1


def test_a_message_added_removed_and_back_keeps_its_ids() -> None:
    one = to(LedgerState(), MEMBERS[0])
    two = to(one.state, MEMBERS[1], MEMBERS[0])
    assert columns(two)["placed"] == columns(one)["placed"]
    assert [(change.kind, change.column) for change in two.changes] == [("added", "val.gone")]
    without = to(two.state, MEMBERS[1])
    assert [(change.kind, change.column) for change in without.changes] == [("removed", "val.placed")]
    assert columns(without) == columns(two)
    assert to(without.state, *MEMBERS[:2]).version == 2
    grown = source(PLACED.replace("int32 a = 1;", "int32 a = 1; int32 z = 9;"), "t.Placed")
    back = to(without.state, grown, MEMBERS[1])
    assert columns(back) == columns(two)
    assert [(change.kind, change.column) for change in back.changes] == [("restored", "val.placed")]
    assert back.iceberg_schema.find_field("val.placed.a") == two.iceberg_schema.find_field("val.placed.a")


def test_a_message_under_another_name_is_another_column() -> None:
    first = to(LedgerState(), MEMBERS[0])
    second = to(first.state, source(PLACED.replace("Placed", "Set"), "t.Set"))
    assert columns(second).keys() == {"placed", "set"}
    assert [(change.kind, change.column) for change in second.changes] == [
        ("removed", "val.placed"),
        ("added", "val.set"),
    ]


def test_from_one_message_to_several_and_back() -> None:
    single = assign(LedgerState(), value=MEMBERS[0])
    several = to(single.state, *MEMBERS[:2])
    raw = single.iceberg_schema.find_field("val.__raw__")
    assert several.iceberg_schema.find_field("val.__raw__") == raw
    assert several.iceberg_schema.find_field("val.a").doc == "removed in schema version 2"
    assert assign(several.state, value=MEMBERS[0]).version == 1


def test_types_of_one_name_keep_their_own_definitions() -> None:
    made = to(LedgerState(), *MEMBERS)
    names = [
        [field.name for field in made.iceberg_schema.find_type(f"val.{message}.m").fields]
        for message in ("placed", "gone")
    ]
    assert names == [["u", "__unrecognized__"], ["u", "currency", "__unrecognized__"]]
    tree = outline(made.state)
    assert tree.roots[1].message == "t.Gone | t.Placed | z.Gone"
    placed = next(column for column in tree.roots[1].columns if column.name == "placed")
    assert (placed.number, placed.source_name) == (None, "t.Placed")


def test_comments_of_all_of_them() -> None:
    texts = [f"message {name} {{ int32 a = 1; // Of {name}.\n }}" for name in ("One", "Two")]
    made = to(LedgerState(), *(source(text, f"t.{text.split()[1]}") for text in texts))
    assert [made.iceberg_schema.find_field(f"val.{name}.a").doc for name in ("one", "two")] == ["Of One.", "Of Two."]


def test_listed_messages_have_columns_despite_the_budget() -> None:
    made = to(LedgerState(), *MEMBERS[:2], max_columns=1)
    assert made.iceberg_schema.find_field("val.gone.why")
    assert [field.name for field in made.iceberg_schema.find_type("val.gone.m").fields] == ["__unrecognized__"]
    assert {cut.column for cut in union_of(made).cuts} == {"gone.m", "placed.m", "placed.again"}


def test_no_message_and_one_twice() -> None:
    for members in ((), (MEMBERS[0], MEMBERS[0])):
        with pytest.raises(DescriptorError, match="each once"):
            to(LedgerState(), *members)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("a.OrderPlaced", "order_placed"),
        ("Order", "order"),
        ("a.b.HTTPRequestV2", "http_request_v2"),
        ("x.Outer.inner_Thing", "inner_thing"),
        ("x.ID", "id"),
    ],
)
def test_names_in_snake_case(name: str, column: str) -> None:
    assert member_column(name) == column


def test_each_value_sets_its_own_struct() -> None:
    mapping = union_of(to(LedgerState(), *MEMBERS))
    gone, placed, empty = (mapping.messages.index(name) for name in ("t.Gone", "t.Placed", "z.Gone"))
    values = [b"\x08\x05\x12\x01x", b"\x0a\x01w\x48\x01", b"", None, b"\x08", b"\x08\x00", b"\x10\x01", b"?"]
    rows = decode(mapping, values, [placed, gone, empty, -1, placed, placed, empty, -1])
    pylist = rows.to_pylist()
    assert pylist[0]["placed"] == {"a": 5, "b": ["x"], "m": None, "again": None, "__unrecognized__": None}
    assert pylist[1]["gone"] == {"why": "w", "m": None, "__unrecognized__": b"\x48\x01"}
    assert pylist[2]["gone_3"] == {"__unrecognized__": None}
    assert pylist[3] is pylist[7] is None
    assert (pylist[4]["__err__"], pylist[4]["__raw__"]) == ("truncated@1", b"\x08")
    assert (pylist[5]["placed"]["a"], pylist[5]["__raw__"]) == (0, b"\x08\x00")
    assert pylist[6]["gone_3"] == {"__unrecognized__": b"\x10\x01"}
    for row in (pylist[at] for at in (0, 1, 2, 5, 6)):
        assert sum(row[name] is not None for name in ("gone", "placed", "gone_3")) == 1
    assert not any(pylist[4][name] for name in ("gone", "placed", "gone_3"))
    assert mapping.encode(rows).to_pylist() == [*values[:7], None]


def test_rows_that_no_decoder_made() -> None:
    mapping = union_of(to(LedgerState(), *MEMBERS))
    rows = decode(mapping, [b"", b""], [0, 1])
    columns = dict(zip(mapping.arrow_type.names, rows.flatten(), strict=True))
    fields = list(mapping.arrow_type)

    def remade(**changes: pa.Array) -> pa.StructArray:
        return pa.StructArray.from_arrays(list((columns | changes).values()), fields=fields)

    both = decode(mapping, [b"", b""], [0, 0]).field(0)
    with pytest.raises(KernelError, match="not exactly one of the messages"):
        mapping.encode(remade(gone=both))
    with pytest.raises(KernelError, match="not exactly one of the messages"):
        mapping.encode(remade(gone=pa.nulls(2, both.type)))
    with pytest.raises(KernelError, match="don't have the mapping's type"):
        mapping.encode(pa.StructArray.from_arrays([columns["gone"]], names=["gone"]))


def test_it_travels() -> None:
    row = to(LedgerState(), *MEMBERS).row
    assert row_mapping_from_json(row.to_json()) == row
    assert pickle.loads(pickle.dumps(row)) == row
    assert hash(row.value) == hash(pickle.loads(pickle.dumps(row.value)))


def check(package: str, seed: int, **options: object) -> None:
    chosen = random.Random(seed)
    descriptors: dict[str, Descriptor] = {
        item.full_name: item for item in chosen.sample(list(messages(package).values()), 4)
    }
    made = to(LedgerState(), *(closure(descriptor) for descriptor in descriptors.values()), **options)
    mapping = union_of(made)
    values: list[bytes | None] = []
    which: list[int] = []
    for number in range(40):
        position = chosen.randrange(-1, len(mapping.messages))
        written = b"x"
        if position >= 0:
            written = random_message(number, descriptors[mapping.messages[position]]).SerializePartialToString()
        values.append(None if position < 0 else damaged(number, written) if number % 4 == 0 else written)
        which.append(position)
    rows = decode(mapping, values, which)
    assert mapping.encode(rows).to_pylist() == values
    for position, member in enumerate(mapping.members):
        alone = compile_mapping(find_descriptor(member.schema), options=MappingOptions(**options))  # type: ignore[arg-type]
        own = [at for at, value in enumerate(which) if value == position]
        expected = alone.decode(pa.array([values[at] for at in own], pa.binary()))
        for name in ("__raw__", "__err__", "__form__"):
            assert rows.field(name).take(pa.array(own, pa.int64())).equals(expected.field(name))
        if not (mapping.cuts or alone.cuts):
            struct = rows.field(position).take(pa.array(own, pa.int64())).to_pylist()
            good = expected.field("__err__").is_null().to_pylist()
            specials = ("__raw__", "__err__", "__prefix__", "__form__")
            fields = [
                {name: cell for name, cell in row.items() if name not in specials} if fine else None
                for row, fine in zip(expected.to_pylist(), good, strict=True)
            ]
            assert repr(struct) == repr(fields)


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("options", [{}, {"well_known_types": "native", "uint64": "decimal"}])
def test_several_messages_of_real_schemas(package: str, options: dict[str, object]) -> None:
    for seed in range(3):
        check(package, seed, **options)
