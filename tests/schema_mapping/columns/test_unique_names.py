"""Column names that clash."""

from __future__ import annotations

from schema_mapping import Assignment, LedgerState, assign, compile_mapping
from tests.support.schemas.proto_text import descriptor_of, fields


def history(*bodies: str) -> list[dict[str, str]]:
    state, result = LedgerState(), []
    for body in bodies:
        assigned = assign(state, value=fields(body))
        state = assigned.state
        result.append(top_level(assigned))
    return result


def top_level(assigned: Assignment) -> dict[str, str]:
    return {
        entry.name: entry.state.value
        for entry in assigned.state.entries
        if entry.root == "val" and len(entry.path) == 1 and entry.path[0] > 0
    }


def test_names_equal_but_for_case() -> None:
    assert history("int32 foo = 1; int32 Foo = 2; int32 FOO = 3;") == [
        {"foo": "live", "Foo_2": "live", "FOO_3": "live"},
    ]


def test_the_name_a_clash_would_take_is_taken_too() -> None:
    (names,) = history("int32 foo = 1; int32 Foo = 2; int32 foo_2 = 3;")
    assert set(names) == {"foo", "foo_2", "Foo_2_102"}


def test_reserved_names() -> None:
    (names,) = history("bytes __raw__ = 1; string __ERR__ = 2; bytes __unrecognized__ = 3; bytes __prefix__ = 4;")
    assert set(names) == {"__raw___1", "__ERR___2", "__unrecognized___3", "__prefix___4"}


def test_reserved_names_below_the_root() -> None:
    mapping = compile_mapping(descriptor_of("message M { A a = 1; } message A { bytes __unrecognized__ = 5; }"))
    inner = mapping.arrow_type.field("a").type
    assert [field.name for field in inner] == ["__unrecognized___5", "__unrecognized__"]
    assert mapping.root.fields[0].message is not None
    assert mapping.root.fields[0].message.fields[0].source_name == "__unrecognized__"


def test_a_clash_is_kept_in_the_ledger() -> None:
    assert history("int32 foo = 5;", "int32 FOO = 1; int32 foo = 5;", "int32 FOO = 1;", "int32 FOO = 1; int32 x = 9;")[
        1:
    ] == [
        {"foo": "live", "FOO_1": "live"},
        {"foo": "deleted", "FOO_1": "live"},
        {"foo": "deleted", "FOO_1": "live", "x": "live"},
    ]


def test_the_live_field_owns_the_name_of_one_that_is_gone() -> None:
    assert history("int32 foo = 1;", "int32 bar = 2;", "int32 bar = 2; string foo = 3;")[-1] == {
        "foo_1": "deleted",
        "bar": "live",
        "foo": "live",
    }


def test_one_that_comes_back_gets_its_name_again_if_it_is_free() -> None:
    versions = history("int32 foo = 1;", "string foo = 3;", "int32 foo = 1;  string bar = 3;")
    assert versions[1] == {"foo_1": "deleted", "foo": "live"}
    assert versions[2] == {"foo": "live", "bar": "live"}


def test_a_field_renamed_to_less_than_its_column_name() -> None:
    assert history("int32 foo_7 = 7;", "int32 foo = 7;")[-1] == {"foo": "live"}


def test_old_generations_keep_their_marked_name() -> None:
    versions = history("int32 a = 1;", "string a = 1;", "string b = 1;", "bytes b = 1;", "int32 c = 2;")
    assert versions[1] == {"a_deleted_101": "deleted", "a": "live"}
    assert versions[2] == {"a_deleted_101": "deleted", "b": "live"}
    assert versions[3] == {"a_deleted_101": "deleted", "b_deleted_107": "deleted", "b": "live"}
    assert versions[4] == {
        "a_deleted_101": "deleted",
        "b_deleted_107": "deleted",
        "b": "deleted",
        "c": "live",
    }


def test_a_new_field_with_a_marked_name_makes_the_old_one_yield() -> None:
    assert history("int32 a = 1;", "string a = 1;", "string a = 1; int32 a_deleted_101 = 2;")[-1] == {
        "a_deleted_101_1": "deleted",
        "a": "live",
        "a_deleted_101": "live",
    }
