"""Fields that older rows have elsewhere."""

from __future__ import annotations

import pyarrow as pa
import pytest

from archiver.records.former_columns import ColumnHistory
from schema_mapping import Assignment, LedgerState, MappingOptions, SourceSchema, UnionSchema, assign
from schema_mapping.columns.ledger import ColumnState, LedgerEntry, Root
from schema_mapping.columns.paths import Path
from schema_mapping.columns.types import ColumnType
from tests.support.archive.judged_rows import gone, rows_of, said, text, union_rows
from tests.support.schemas.proto_text import compile_text

WRAPPED = 'syntax = "proto3"; package t; import "google/protobuf/wrappers.proto"; message M {'
NOW = "message C { string id = 1; } message M { C c = 1; }"
SENT = text(1, text(1, b"x"))


@pytest.mark.parametrize(
    "before",
    [
        "message M { bytes c = 1; }",
        "message M { string c = 1; }",
        "message M { repeated bytes c = 1; }",
        "message C { string id = 1; } message M { repeated C c = 1; }",
        "message C { int32 key = 1; string value = 2; } message M { map<int32, string> c = 1; }",
    ],
)
def test_field_in_former_column_of_outer_struct_is_named(before: str) -> None:
    first = assign(LedgerState(), value=compile_text(before))
    now = assign(first.state, value=compile_text(NOW if "map" not in before else NOW.replace("id = 1", "id = 2")))
    sent = SENT if "map" not in before else text(1, b"\x08\x01" + text(2, b"x"))
    rows = rows_of(first, sent, None)
    assert said("val.c.id = 'x'", now, rows, first) == ([], [0])
    assert gone("val.c.id = 'x'", now, rows, first) == ([], [0])
    assert gone("not val.c.id = 'x'", now, rows, first) == ([1], [0]), "its value is the very one that stays"
    assert gone("val.c.id not in ('x', 'y')", now, rows, first) == ([1], [0])


def test_a_former_list_or_map_without_entries_has_nothing() -> None:
    for before in (
        "message C { string id = 1; } message M { repeated C c = 1; }",
        "message M { map<int32, int32> c = 1; }",
    ):
        first = assign(LedgerState(), value=compile_text(before))
        now = assign(first.state, value=compile_text(NOW))
        rows = rows_of(first, b"", SENT if "map" not in before else text(1, b"\x08\x01\x10\x01"), b"")
        for start in range(3):
            assert said("val.c.id = 'x'", now, rows.slice(start), first) == ([], [1 - start] if start < 2 else [])


def test_a_column_that_was_native_and_the_reverse() -> None:
    source = compile_text(WRAPPED + " google.protobuf.StringValue nick = 1; }")
    native, structs = MappingOptions(well_known_types="native"), MappingOptions(well_known_types="struct")
    for before, after, column in ((native, structs, "val.nick.value"), (structs, native, "val.nick")):
        first = assign(LedgerState(), value=source, options=before)
        now = assign(first.state, value=source, options=after)
        rows = rows_of(first, SENT, b"")
        assert gone(f"{column} = 'x'", now, rows, first) == ([], [0])
        assert gone(f"not {column} = 'x'", now, rows, first) == ([1], [0])


def test_a_former_column_that_others_took_out_of_the_file() -> None:
    first = assign(LedgerState(), value=compile_text("message M { bytes c = 1; }"))
    now = assign(first.state, value=compile_text(NOW))
    rows = rows_of(first, SENT, None)
    value = rows.column("val")
    kept_ = [field for field in value.type if field.name != "c"]
    without = pa.StructArray.from_arrays(
        [value.field(field.name) for field in kept_], fields=kept_, mask=value.is_null()
    )
    schema = pa.schema([field.with_type(without.type) if field.name == "val" else field for field in rows.schema])
    columns = [without if name == "val" else rows.column(name) for name in rows.schema.names]
    assert said("val.c.id = 'x'", now, pa.RecordBatch.from_arrays(columns, schema=schema), first) == ([], [0])


A = compile_text("message D { string id = 1; } message A { string id = 1; D d = 2; optional int32 n = 3; }", "t.A")
A2 = compile_text("message D { string id = 1; } message A2 { string id = 1; D d = 2; optional int32 n = 3; }", "t.A2")
B = compile_text("message B { optional int32 k = 1; }", "t.B")
C = compile_text("message C { optional int32 k = 1; }", "t.C")
IN_D = text(2, text(1, b"x"))


def union(state: LedgerState, *members: SourceSchema) -> Assignment:
    return assign(state, value=UnionSchema(members=members))


def test_rows_from_before_a_topic_had_several_messages() -> None:
    alone = assign(LedgerState(), value=A)
    now = union(alone.state, A, B)
    rows = rows_of(alone, text(1, b"x") + IN_D, b"\x18\x01", None)
    assert gone("val.a.id = 'x'", now, rows, alone) == ([], [0, 1]), "an empty text may be one that was sent"
    assert gone("not val.a.n = 1", now, rows, alone) == ([0, 2], [1])
    assert gone("not val.a.d.id = 'x'", now, rows, alone) == ([1, 2], [0])
    assert gone("val.b.k = 1", now, rows, alone) == ([], [0, 1])
    assert gone("val.id = 'x'", now, rows, alone) == ([0], [])
    assert gone("val.a.id = 'x' or val.id = 'x'", now, rows, alone) == ([0], []), "both are named"
    assert gone("val.a.d.id = 'x' or val.d.id = 'x'", now, rows, alone) == ([0], [])


def test_rows_from_when_a_topic_had_several_messages() -> None:
    several = union(LedgerState(), A, B)
    now = assign(several.state, value=A)
    rows = union_rows(several, ("t.A", text(1, b"x") + IN_D), ("t.B", b"\x08\x01"), ("t.A", b"\x18\x01"))
    assert gone("val.n = 1", now, rows, several) == ([], [2])
    assert gone("not val.d.id = 'x'", now, rows, several) == ([1, 2], [0])
    assert gone("not val.id = 'x'", now, rows, several) == ([], [0, 1, 2])
    assert gone("val.a.id = 'x'", now, rows, several) == ([0], [])


def test_rows_of_other_messages_than_the_one_asked_for() -> None:
    first = union(LedgerState(), A, B)
    rows = union_rows(first, ("t.A", text(1, b"x")), ("t.B", b"\x08\x01"))
    more = union(first.state, A, B, C)
    assert gone("val.c.k = 1", more, rows, first) == ([], []), "none of them is a C, which came later"
    renamed = union(first.state, A2, B)
    assert gone("val.a2.id = 'x'", renamed, rows, first) == ([], [0]), "it may be what the message was called before"
    assert gone("not val.a2.id = 'x'", renamed, rows, first) == ([1], [0])
    assert gone("val.a2.id = 'x' or val.a.id = 'x'", renamed, rows, first) == ([0], [])
    former = assign(LedgerState(), value=compile_text("message Old { string id = 1; }", "t.Old"))
    now = assign(former.state, value=compile_text("message New { int32 n = 2; string id = 3; }", "t.New"))
    rows = rows_of(former, text(1, b"x"), None)
    assert gone("val.id = 'x'", now, rows, former) == ([], [0])
    assert gone("not val.id = 'x'", now, rows, former) == ([1], [0])


def test_what_a_struct_did_not_know_when_the_message_was_alone() -> None:
    half = "message D { optional int32 n = 9; } message A { D d = 2; }"
    alone = assign(LedgerState(), value=compile_text(half, "t.A"))
    now = union(alone.state, A, B)
    rows = rows_of(alone, IN_D, text(2, b"\x48\x01"), text(1, b"x"))
    assert gone("val.a.d.id = 'x'", now, rows, alone) == ([], [0, 2]), "the root's unknown fields count for all of it"
    assert gone("not val.a.d.id = 'x'", now, rows, alone) == ([1], [0, 2])
    assert gone("val.a.id = 'x'", now, rows, alone) == ([], [2])


def test_formats_have_no_paths_in_common() -> None:
    places: list[tuple[Root, Path, int]] = [
        ("val", ("id",), 2),
        ("val", (1,), 2),
        ("key", (1,), 1),
        ("val", (-4,), 2),
        ("val", ("n",), 2),
    ]
    entries = [
        LedgerEntry(
            root=root,
            path=path,
            generation=0,
            parent_id=parent,
            field_id=number,
            name="id",
            source_name="id",
            type=ColumnType.STRING,
            state=ColumnState.LIVE,
            since_version=1,
        )
        for number, (root, path, parent) in enumerate(places, start=100)
    ]
    history = ColumnHistory(LedgerState(entries=tuple(entries)))
    assert [history.former(entry.field_id) for entry in entries[:3]] == [{101}, {100, 104}, frozenset()]


def test_nanoseconds_of_former_structs_are_in_the_struct() -> None:
    source = compile_text(
        'syntax = "proto3"; package t; import "google/protobuf/timestamp.proto"; '
        "message M { google.protobuf.Timestamp t = 1; }"
    )
    first = assign(LedgerState(), value=source, options=MappingOptions(well_known_types="struct"))
    now = assign(first.state, value=source, options=MappingOptions(well_known_types="timestamp"))
    rows = rows_of(first, text(1, b"\x08\x01\x10\x05"), b"")
    assert said("val.t_nanos = 5", now, rows, first) == ([], [0])
    assert gone("val.t_nanos = 5", now, rows, first) == ([], [0])
