"""Every row of the table of changes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from schema_mapping import Assignment, LedgerState, MappingOptions, SourceSchema, assign
from schema_mapping.columns.evolution import ChangeKind, Evolution
from schema_mapping.columns.ledger import ColumnState
from schema_mapping.columns.ledger_tree import LedgerTree
from schema_mapping.columns.shape import root_shape
from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.descriptors import find_descriptor
from schema_mapping.protobuf.message_columns import message_columns
from schema_mapping.protobuf.type_graph import type_graph
from tests.support.engine.cpu_time import spent
from tests.support.schemas.assigned_columns import changed, columns, row_columns
from tests.support.schemas.proto_text import compile_text, fields


@dataclass
class Table:
    state: LedgerState = field(default_factory=LedgerState)
    last: Assignment | None = None

    def to(self, source: SourceSchema | str | None, **options: int) -> Assignment:
        source = fields(source) if isinstance(source, str) else source
        self.last = assign(self.state, value=source, options=MappingOptions(**options))
        self.state = self.last.state
        return self.last


def test_first_version() -> None:
    first = Table().to("int32 a = 1; string b = 2;")
    assert (first.version, first.row.schema_version) == (1, 1)
    assert columns(first.iceberg_schema) == {"a": (101, "int"), "b": (102, "string")}
    assert row_columns(first) == {"a": 101, "b": 102}
    assert first.iceberg_schema.find_type("key.__raw__") == first.iceberg_schema.find_type("val.__raw__")


def test_field_added() -> None:
    table = Table()
    first = table.to("int32 a = 1; int32 c = 3;")
    second = table.to("int32 a = 1; string b = 2; int32 c = 3;")
    assert changed(second) == [("added", "val.b")]
    new = first.state.last_id + 1
    assert columns(second.iceberg_schema) == {"a": (101, "int"), "b": (new, "string"), "c": (102, "int")}
    assert second.version == 2


def test_field_renamed() -> None:
    table = Table()
    table.to("int32 a = 1; int32 b = 2;")
    second = table.to("int32 b = 1; int32 a = 2;")
    assert columns(second.iceberg_schema) == {"b": (101, "int"), "a": (102, "int")}
    assert [(change.kind, change.before, change.after) for change in second.changes] == [
        (ChangeKind.RENAMED, "a", "b"),
        (ChangeKind.RENAMED, "b", "a"),
    ]


def test_field_removed_and_back() -> None:
    table = Table()
    table.to("int32 a = 1; int32 b = 2;")
    second = table.to("int32 a = 1;")
    assert changed(second) == [("removed", "val.b")]
    assert columns(second.iceberg_schema) == {"a": (101, "int"), "b": (102, "int")}
    assert second.iceberg_schema.find_field("val.b").doc == "removed in schema version 2"
    assert row_columns(second) == {"a": 101}
    third = table.to("int32 a = 1; int32 b = 2; int32 c = 3;")
    assert changed(third) == [("restored", "val.b"), ("added", "val.c")]
    assert columns(third.iceberg_schema)["b"] == (102, "int")
    assert third.iceberg_schema.find_field("val.b").doc is None


def test_field_removed_and_dropped() -> None:
    table = Table()
    table.to("int32 a = 1; int32 b = 2;", keep_removed=False)
    second = table.to("int32 a = 1;", keep_removed=False)
    assert changed(second) == [("dropped", "val.b")]
    assert columns(second.iceberg_schema) == {"a": (101, "int")}
    third = table.to("int32 a = 1; int32 b = 2; int32 c = 3;", keep_removed=False)
    assert columns(third.iceberg_schema)["b"] == (102, "int")


def test_choosing_to_drop_drops_what_was_removed_before() -> None:
    table = Table()
    nested = "message A { int32 x = 1; int32 y = 2; }"
    table.to(f"int32 a = 1; int32 b = 2; A c = 3; A d = 4; {nested}")
    table.to("int32 a = 1; A c = 3; message A { int32 x = 1; }")
    third = table.to("int32 a = 1; A c = 3; message A { int32 x = 1; }", keep_removed=False)
    assert changed(third) == [("dropped", "val.b"), ("dropped", "val.c.y"), ("dropped", "val.d")]
    assert set(columns(third.iceberg_schema)) == {"a", "c"}
    fourth = table.to("int32 a = 1; string b = 2;", keep_removed=False)
    assert changed(fourth) == [("renamed", "val.b_deleted_102"), ("added", "val.b"), ("dropped", "val.c")]
    assert set(columns(fourth.iceberg_schema)) == {"a", "b"}


def test_dropped_columns_return_with_a_version_that_keeps_them() -> None:
    table = Table()
    table.to("int32 a = 1; int32 b = 2;", keep_removed=False)
    table.to("int32 a = 1;", keep_removed=False)
    third = table.to("int32 a = 1; int32 c = 3;")
    assert changed(third) == [("kept", "val.b"), ("added", "val.c")]
    assert columns(third.iceberg_schema)["b"] == (102, "int")
    assert row_columns(third) == {"a": 101, "c": columns(third.iceberg_schema)["c"][0]}


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("int32", "int64", "long"),
        ("sint32", "sfixed64", "long"),
        ("int32", "uint64", "long"),
        ("float", "double", "double"),
    ],
)
@pytest.mark.parametrize("label", ["", "optional ", "repeated "])
def test_promotion_in_place(label: str, before: str, after: str, kind: str) -> None:
    table = Table()
    first = table.to(f"{label}{before} a = 1;")
    second = table.to(f"{label}{after} a = 1;")
    old, new = columns(first.iceberg_schema)["a"], columns(second.iceberg_schema)["a"]
    assert old[0] == new[0]
    assert kind in new[1]
    assert changed(second) == [("promoted", "val.a.element" if label == "repeated " else "val.a")]
    assert second.state.last_id == first.state.last_id


def test_map_values_promote_and_map_keys_never_do() -> None:
    table = Table()
    first = table.to("map<int32, float> a = 1; map<int32, int32> b = 2;")
    second = table.to("map<int32, double> a = 1; map<int64, int32> b = 2;")
    assert changed(second) == [
        ("promoted", "val.a.value"),
        ("renamed", "val.b_deleted_104"),
        ("replaced", "val.b"),
    ]
    assert columns(first.iceberg_schema)["b"][0] == 104
    assert columns(second.iceberg_schema)["a"] == (101, "map<int, double>")
    assert columns(second.iceberg_schema)["b_deleted_104"] == (104, "map<int, int>")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int32 a = 1;", "sint32 a = 1;"),
        ("int32 a = 1;", "uint32 a = 1;"),
        ("uint32 a = 1;", "sfixed32 a = 1;"),
        ("int64 a = 1;", "fixed64 a = 1;"),
        ("int32 a = 1;", "optional int32 a = 1;"),
        ("int32 a = 1;", "oneof o { int32 a = 1; }"),
        ("repeated int32 a = 1;", "repeated int32 a = 1 [packed = false];"),
        ("string a = 1;", "E a = 1; enum E { Z = 0; }"),
        ("map<int32, string> a = 1;", "map<sint32, string> a = 1;"),
        ("A a = 1; message A { int32 x = 1; }", "B a = 1; message B { int32 x = 1; }"),
    ],
)
def test_a_change_within_one_iceberg_type(before: str, after: str) -> None:
    table = Table()
    first, second = table.to(before), table.to(after)
    assert second.version == 2
    assert second.changes == ()
    assert second.iceberg_schema == first.iceberg_schema
    assert second.row.arrow_schema.equals(first.row.arrow_schema, check_metadata=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int32 a = 1;", "string a = 1;"),
        ("int64 a = 1;", "int32 a = 1;"),
        ("double a = 1;", "float a = 1;"),
        ("uint32 a = 1;", "int64 a = 1;"),
        ("uint32 a = 1;", "uint64 a = 1;"),
        ("fixed32 a = 1;", "fixed64 a = 1;"),
        ("string a = 1;", "bytes a = 1;"),
        ("bool a = 1;", "int32 a = 1;"),
        ("int32 a = 1;", "repeated int32 a = 1;"),
        ("repeated int32 a = 1;", "int32 a = 1;"),
        ("repeated int32 a = 1;", "repeated string a = 1;"),
        ("repeated uint32 a = 1;", "repeated int64 a = 1;"),
        ("A a = 1; message A { int32 x = 1; }", "repeated A a = 1; message A { int32 x = 1; }"),
        ("A a = 1; message A { int32 x = 1; }", "bytes a = 1;"),
        ("map<int32, string> a = 1;", "map<int32, bytes> a = 1;"),
        ("map<uint32, string> a = 1;", "map<string, string> a = 1;"),
        ("map<int32, string> a = 1;", "repeated A a = 1; message A { int32 key = 1; string value = 2; }"),
        ("map<int32, A> a = 1; message A { int32 x = 1; }", "map<string, A> a = 1; message A { int32 x = 1; }"),
    ],
)
def test_other_change_makes_a_generation_that_a_return_reuses(before: str, after: str) -> None:
    table = Table()
    first = table.to(before)
    old = columns(first.iceberg_schema)["a"]
    second = table.to(after)
    assert changed(second) == [("renamed", f"val.a_deleted_{old[0]}"), ("replaced", "val.a")]
    new = columns(second.iceberg_schema)["a"]
    assert new[0] > first.state.last_id
    assert columns(second.iceberg_schema) == {f"a_deleted_{old[0]}": old, "a": new}
    assert row_columns(second) == {"a": new[0]}
    ids = {entry.field_id for entry in second.state.entries}
    assert len(ids) == len(second.state.entries)
    third = table.to(f"{before} int32 z = 9;")
    assert columns(third.iceberg_schema)["a"] == old
    assert columns(third.iceberg_schema)[f"a_deleted_{new[0]}"] == new
    assert row_columns(third)["a"] == old[0]
    fourth = table.to(f"{after} int64 y = 8;")
    assert columns(fourth.iceberg_schema)["a"] == new


def test_deleted_column_is_named_once_despite_a_like_name() -> None:
    table = Table()
    first = table.to("double a_deleted_101 = 5;")
    assert columns(first.iceberg_schema) == {"a_deleted_101": (101, "double")}
    second = table.to("string a = 5; double a_deleted_101 = 6;")
    assert set(columns(second.iceberg_schema)) == {"a", "a_deleted_101", "a_deleted_101_5"}
    assert table.to("optional string a = 5; double a_deleted_101 = 6;").changes == ()


@pytest.mark.parametrize(("narrow", "wide"), [("int32", "int64"), ("float", "double")])
def test_the_order_of_types_decides_whether_they_share_a_column(narrow: str, wide: str) -> None:
    widened, kept = Table(), Table()
    widened.to(f"{narrow} a = 1;")
    assert set(columns(widened.to(f"{wide} a = 1;").iceberg_schema)) == {"a"}
    kept.to(f"{wide} a = 1;")
    assert set(columns(kept.to(f"{narrow} a = 1;").iceberg_schema)) == {"a", "a_deleted_101"}


def test_a_column_that_has_held_unsigned_values_never_widens() -> None:
    table = Table()
    table.to("int32 a = 1;")
    table.to("uint32 a = 1;")
    table.to("int32 a = 1; int32 b = 2;")
    assert ("replaced", "val.a") in changed(table.to("int64 a = 1;"))


def test_all_below_a_new_generation_is_new() -> None:
    table = Table()
    message = "message A { int32 x = 1; B b = 2; message B { int32 y = 1; } }"
    first = table.to(f"map<int32, A> a = 1; {message}")
    second = table.to(f"map<string, A> a = 1; {message}")
    before = {entry.field_id for entry in first.state.entries}
    live = {entry.field_id for entry in second.state.entries if entry.path[:1] == (1,) and entry.state == "live"}
    assert live
    assert not live & before
    third = table.to(f"map<int32, A> a = 1; {message} int32 z = 9;")
    assert {entry.field_id for entry in third.state.entries if entry.path[:1] == (1,) and entry.state == "live"} == {
        entry.field_id for entry in first.state.entries if entry.path[:1] == (1,)
    }


def test_nested_changes_stay_with_the_nearest_named_field() -> None:
    table = Table()
    first = table.to("repeated A a = 1; message A { int32 x = 1; map<string, B> b = 2; } message B { int32 y = 1; }")
    second = table.to("repeated A a = 1; message A { int64 x = 1; map<string, B> b = 2; } message B { bytes y = 1; }")
    assert changed(second) == [
        ("promoted", "val.a.element.x"),
        ("renamed", "val.a.element.b.value.y_deleted_107"),
        ("replaced", "val.a.element.b.value.y"),
    ]
    assert columns(first.iceberg_schema)["a"][0] == columns(second.iceberg_schema)["a"][0]


def test_removal_of_a_message_takes_all_below_and_brings_it_back() -> None:
    table = Table()
    first = table.to("A a = 1; message A { int32 x = 1; int32 y = 2; }")
    table.to("int32 other = 2;")
    third = table.to("A a = 1; message A { int32 x = 1; } int32 other = 2;")
    assert changed(third) == [("restored", "val.a")]
    assert columns(third.iceberg_schema, "val.a") == columns(first.iceberg_schema, "val.a")
    states = {entry.name: entry.state for entry in third.state.entries if entry.path[:1] == (1,)}
    assert (states["x"], states["y"]) == (ColumnState.LIVE, ColumnState.DELETED)


def test_a_schema_seen_before_changes_nothing() -> None:
    table = Table()
    first = table.to("int32 a = 1; string old = 2;")
    second = table.to("int64 a = 1; string new = 2; int32 b = 3;")
    again = table.to("int32 a = 1; string old = 2;")
    assert again.version == 1
    assert again.state == second.state
    assert again.changes == ()
    assert again.row == first.row
    assert row_columns(again) == {"a": 101, "old": 102}
    assert again.iceberg_schema == second.iceberg_schema
    assert table.to("int64 a = 1; string new = 2; int32 b = 3;").version == 2


def test_from_raw_to_protobuf_and_back() -> None:
    table = Table()
    first = table.to(None)
    second = table.to("int32 a = 1;")
    raw = first.iceberg_schema.find_field("val.__raw__").field_id
    assert second.iceberg_schema.find_field("val.__raw__").field_id == raw
    third = table.to(None)
    assert third.version == 1
    assert third.iceberg_schema == second.iceberg_schema


def test_key_and_value_have_ids_of_their_own() -> None:
    source = fields("int32 a = 1;")
    both = assign(LedgerState(), key=source, value=source)
    ids = [entry.field_id for entry in both.state.entries]
    assert sorted(ids) == list(range(100, 112))
    assert both.row.key.keep_raw
    assert not both.row.value.keep_raw
    assert both.iceberg_schema.find_field("key.a").field_id != both.iceberg_schema.find_field("val.a").field_id


def test_new_ids_start_above_the_tables_own() -> None:
    table = Table()
    table.to("int32 a = 1;")
    table.state = table.state.at_least(500)
    assert columns(table.to("int32 a = 1; int32 b = 2;").iceberg_schema)["b"] == (501, "int")
    assert table.state.at_least(3) == table.state


def test_expanded_stays_expanded_and_cut_stays_cut() -> None:
    table = Table()
    budget = 18 + 1 + 1 + 4 + 3 + 2
    messages = "message A { int32 x = 1; int32 y = 2; } message B { int32 p = 1; int32 q = 2; int32 r = 3; }"
    first = table.to(f"A a = 5; B b = 6; {messages}", max_columns=budget)
    assert [cut.column for cut in cuts_of(first)] == ["b"]
    second = table.to(f"B z = 1; A a = 5; B b = 6; {messages}", max_columns=budget)
    assert [cut.column for cut in cuts_of(second)] == ["z", "b"]
    assert columns(second.iceberg_schema, "val.a") == columns(first.iceberg_schema, "val.a")
    third = table.to(f"B z = 1; A a = 5; B b = 6; B n = 7; {messages}", max_columns=2000)
    assert [cut.column for cut in cuts_of(third)] == ["z", "b"]
    fourth = table.to(f"B z = 1; A a = 5; B b = 6; B n = 7; {messages}", max_columns=2000, expand_cuts=True)
    assert cuts_of(fourth) == ()
    assert [change for change in changed(fourth) if change[0] == "expanded"] == [
        ("expanded", "val.z"),
        ("expanded", "val.b"),
    ]


def cuts_of(assignment: Assignment) -> tuple[object, ...]:
    return assignment.row.value.cuts  # type: ignore[union-attr]


def test_field_that_closes_a_recursion_is_cut_columns_stay() -> None:
    table = Table()
    table.to("A a = 1; message A { int32 x = 1; }")
    second = table.to("M a = 1; int32 x = 2;")
    assert ("cut", "val.a") in changed(second)
    assert set(columns(second.iceberg_schema, "val.a")) == {"x"}
    assert [field.name for field in second.row.arrow_schema.field("val").type.field("a").type] == ["__unrecognized__"]


def test_deleted_columns_count_against_the_budget() -> None:
    table = Table()
    many = " ".join(f"int32 f{number} = {number};" for number in range(10, 60))
    table.to(many, max_columns=90)
    second = table.to("A a = 1; message A { int32 x = 1; " + many + "}", max_columns=90)
    assert [cut.column for cut in cuts_of(second)] == ["a"]


def test_more_columns_than_a_table_takes() -> None:
    table = Table()
    table.to(" ".join(f"int32 f{number} = {number};" for number in range(1, 6_000)))
    with pytest.raises(DescriptorError, match="columns before any new sub-message"):
        table.to(" ".join(f"int32 f{number} = {number};" for number in range(7_000, 12_000)))


def test_groups_and_messages_share_columns() -> None:
    table = Table()
    table.to(compile_text('syntax = "proto2"; package t; message M { optional group A = 1 { optional int32 x = 1; } }'))
    second = table.to(
        compile_text(
            'syntax = "proto2"; package t; message M { optional A a = 1; } message A { optional int32 x = 1; }'
        )
    )
    assert second.changes == ()


def test_ten_thousand_fields_take_less_than_a_second_to_settle() -> None:
    many = type_graph(find_descriptor(fields(" ".join(f"int32 f{n} = {n};" for n in range(1, 10_001)))))
    shapes = root_shape(message_columns(many), ())
    ledger = LedgerTree(LedgerState(), version=1)
    Evolution(ledger).settle("val", shapes)
    state = LedgerState(entries=ledger.entries(), last_id=ledger.last_id)
    again = LedgerTree(state, version=2)
    cpu = spent(lambda: Evolution(again).settle("val", shapes[5_000:]))
    assert cpu < 1
    assert sum(entry.state is ColumnState.LIVE for entry in again.entries()) == len(shapes) - 5_000
