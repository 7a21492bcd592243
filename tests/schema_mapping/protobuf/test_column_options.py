"""`(archiver.column)` in a .proto renames or excludes a column."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from schema_mapping import LedgerState, MappingOptions, SourceSchema, UnionMapping, UnionSchema, assign, compile_mapping
from schema_mapping.columns.evolution import ChangeKind
from schema_mapping.columns.ledger import ColumnState
from schema_mapping.errors import DescriptorError, KernelError
from schema_mapping.field_ids import Assignment
from schema_mapping.outline import outline
from schema_mapping.protobuf.column_options import COLUMN_NUMBER, OPTIONS_FILE, options_file
from schema_mapping.protobuf.descriptors import closure, find_descriptor, parse_descriptor_set
from schema_mapping.protobuf.message_mapping import MessageMapping
from schema_mapping.protobuf.type_graph import type_graph
from tests.support.schemas.proto_text import compile_text

IMPORT = 'syntax = "proto3"; package t; import "archiver/options.proto"; '
EXCLUDE = "[(archiver.column).exclude = true]"


def with_options(body: str) -> SourceSchema:
    return compile_text(f"{IMPORT} message M {{ {body} }} message N {{ int32 x = 1; string y = 2; }}")


def named(name: str) -> str:
    return f'[(archiver.column).name = "{name}"]'


def mapped(body: str) -> MessageMapping:
    return compile_mapping(find_descriptor(with_options(body)))


def evolve(*bodies: str, **options: bool) -> list[Assignment]:
    state, history = LedgerState(), []
    for body in bodies:
        history.append(assign(state, value=with_options(body), options=MappingOptions(**options)))
        state = history[-1].state
    return history


def live(assignment: Assignment) -> dict[str, int]:
    return {
        entry.name: entry.field_id
        for entry in assignment.state.entries
        if entry.root == "val" and entry.path[-1] > 0 and entry.state is ColumnState.LIVE
    }


def test_built_in_descriptor_is_protocs() -> None:
    compiled = FileDescriptorSet.FromString(with_options("int32 a = 1;").descriptor_set)
    shipped = next(file for file in compiled.file if file.name == OPTIONS_FILE)
    shipped.ClearField("source_code_info")
    assert options_file() == shipped
    assert 50_000 <= COLUMN_NUMBER <= 99_999


def test_the_file_at_the_root_is_the_one_in_the_package() -> None:
    root = Path(__file__).parents[3] / "proto" / OPTIONS_FILE
    assert root.read_text() == (resources.files("schema_mapping") / "proto" / OPTIONS_FILE).read_text()


def test_a_column_takes_the_name_it_is_given() -> None:
    mapping = mapped(f"int32 a = 1 {named('first')}; repeated N b = 2 {named('many')}; map<string, N> c = 3;")
    assert mapping.arrow_type.names[:3] == ["first", "many", "c"]
    assert [field.source_name for field in mapping.root.fields] == ["a", "b", "c"]


def test_naming_a_column_renames_it_and_keeps_its_id() -> None:
    first, second, third = evolve("int32 a = 1;", f"int32 a = 1 {named('x')};", f"int32 renamed = 1 {named('x')};")
    assert [change.kind for change in second.changes] == [ChangeKind.RENAMED]
    assert live(first)["a"] == live(second)["x"] == live(third)["x"]
    assert third.changes == ()


@pytest.mark.parametrize(
    ("body", "columns"),
    [
        (f"int32 a = 1; int32 b = 2 {named('A')};", {"a", "A_2"}),
        (f"int32 b = 1 {named('__raw__')};", {"__raw___1"}),
        (f"int32 a = 1 {named('b')}; int32 b = 2 {named('a')};", {"a", "b"}),
        (f"int32 a = 1 {named('b')}; int32 b = 2;", {"b", "b_2"}),
    ],
)
def test_given_names_clash_like_any_other(body: str, columns: set[str]) -> None:
    assert set(live(evolve(body)[0])) == columns


@pytest.mark.parametrize("name", ["a.b", "1a", "a b", "\u00e4", "a" * 129, "`"])
def test_a_name_that_no_column_can_have_is_refused(name: str) -> None:
    with pytest.raises(DescriptorError, match="letters, digits and underscores") as caught:
        mapped(f"int32 a = 1 {named(name)};")
    assert caught.value.context["field"] == "t.M.a"


def test_an_excluded_field_has_no_column_and_its_bytes_stay() -> None:
    source = with_options(f"int32 a = 1; string secret = 2 {EXCLUDE}; int32 z = 3; N n = 4 {EXCLUDE};")
    descriptor = find_descriptor(source)
    mapping = compile_mapping(descriptor)
    assert mapping.arrow_type.names == ["a", "z", "__prefix__", "__raw__", "__err__", "__form__", "__unrecognized__"]
    assert set(mapping.graph.types) == {"t.M"}
    value = message_factory.GetMessageClass(descriptor)(a=1, secret="s", z=3, n={"x": 7}).SerializeToString()
    rows = mapping.decode(pa.array([value]))
    assert rows.to_pylist() == [
        {
            **dict.fromkeys(mapping.arrow_type.names),
            "a": 1,
            "z": 3,
            "__unrecognized__": b"\x12\x01s\x22\x02\x08\x07",
        }
    ]
    assert mapping.encode(rows).to_pylist() == [value]


def test_excluding_is_removing_and_the_column_comes_back() -> None:
    body = "int32 a = 1; int32 b = 2"
    first, second, third = evolve(f"{body};", f"{body} {EXCLUDE};", f"{body}; int32 c = 3;")
    assert [(change.kind, change.column) for change in second.changes] == [(ChangeKind.REMOVED, "val.b")]
    assert second.iceberg_schema.find_field("val.b").doc == "removed in schema version 2"
    assert [(change.kind, change.column) for change in third.changes] == [
        (ChangeKind.RESTORED, "val.b"),
        (ChangeKind.ADDED, "val.c"),
    ]
    assert live(first)["b"] == live(third)["b"]


@pytest.mark.parametrize(
    "before", [("int32 a = 1; int32 z = 3;",), ("int32 a = 1; N b = 2; int32 z = 3;", "int32 a = 1; int32 z = 3;")]
)
def test_excluded_field_has_its_place_and_is_stored_once(before: tuple[str, ...]) -> None:
    *_, without, excluded = evolve(*before, f"int32 a = 1; N b = 2 {EXCLUDE}; int32 z = 3;")
    assert (excluded.version, excluded.changes) == (without.version + 1, ())
    assert excluded.iceberg_schema == without.iceberg_schema
    assert excluded.row.value != without.row.value
    assert excluded.row.value.fingerprint != without.row.value.fingerprint
    value = b"\x08\x01\x12\x02\x08\x07\x18\x03"
    rows = excluded.row.value.decode(pa.array([value]))
    assert rows.field("__raw__").to_pylist() == [None]
    assert excluded.row.value.encode(rows).to_pylist() == [value]


def test_of_an_excluded_field_only_its_place_counts() -> None:
    texts = ("N b = 2", "M other = 2", "string b = 2", "repeated N b = 2", "oneof o { N b = 2", "N b = 4")
    bodies = [f"int32 a = 1; {text} {EXCLUDE};{' }' if 'oneof' in text else ''}" for text in texts]
    result = [type_graph(find_descriptor(with_options(body))).fingerprint() for body in bodies]
    assert result[0] == result[1]
    assert len(set(result[1:])) == len(result) - 1


GO_TEXT = f"""
    oneof p {{ int32 a = 2; string b = 3 {EXCLUDE}; }} int32 c = 4; int32 d = 5 {EXCLUDE};
    oneof q {{ int32 e = 1; int32 f = 9 {EXCLUDE}; }} M inner = 6; repeated M more = 7;"""
# As Go writes: members of oneofs after all other fields, in the order of the oneofs.
GO_VALUES = (
    b"\x20\x04\x1a\x01b",
    b"\x20\x04\x28\x05\x1a\x01b\x08\x01",
    b"\x20\x04\x28\x05\x10\x02\x48\x09",
    b"\x32\x04\x20\x04\x48\x09\x3a\x05\x20\x04\x1a\x01b\x3a\x02\x48\x09\x1a\x00\x48\x01",
    b"\x28\x05\x1a\x01b\x08\x01\xa0\x06\x01",
)


def test_gos_bytes_with_an_excluded_oneof_member_need_no_raw() -> None:
    mapping = mapped(GO_TEXT)
    rows = mapping.decode(pa.array(GO_VALUES))
    assert rows.field("__raw__").to_pylist() == [None] * len(GO_VALUES)
    assert rows.field("__form__").to_pylist() == ["all_oneofs_last"] * len(GO_VALUES)
    assert rows.field("a").to_pylist() == [None, None, 2, None, None]
    assert mapping.encode(rows).to_pylist() == list(GO_VALUES)


def test_values_in_another_order_than_go_writes_stay_raw() -> None:
    values = [b"\x1a\x01b\x20\x04\x10\x02", b"\x20\x04\x08\x01\x1a\x01b", b"\x28\x05\x20\x04\x1a\x01b"]
    mapping = mapped(GO_TEXT)
    rows = mapping.decode(pa.array(values))
    assert rows.field("__raw__").to_pylist() == values
    assert rows.field("__form__").to_pylist() == [None] * 3
    assert mapping.encode(rows).to_pylist() == values


def test_rows_of_the_older_oneof_form_keep_their_bytes() -> None:
    mapping = mapped(GO_TEXT)
    value = b"\x1a\x01b\x20\x04\x28\x05\x08\x01"
    rows = mapping.decode(pa.array([value])).to_pylist()
    rows[0] |= {"__raw__": None, "__form__": "oneofs_last", "__unrecognized__": b"\x1a\x01b\x28\x05"}
    assert mapping.encode(pa.array(rows, mapping.arrow_type)).to_pylist() == [value]
    rows[0]["__form__"] = "some_oneofs_last"
    with pytest.raises(KernelError, match="__form__"):
        mapping.encode(pa.array(rows, mapping.arrow_type))


def test_options_are_found_without_the_file_that_declares_them() -> None:
    text = f"int32 a = 1 {named('x')}; int32 b = 2 {EXCLUDE};"
    files = parse_descriptor_set(with_options(text).descriptor_set).file
    (own,) = (FileDescriptorProto.FromString(file.SerializeToString()) for file in files if file.name == "test.proto")
    with_import = FileDescriptorSet(file=[own]).SerializeToString()
    del own.dependency[:]
    without = FileDescriptorSet(file=[own]).SerializeToString()
    for descriptors in (with_import, without):
        descriptor = find_descriptor(SourceSchema(descriptor_set=descriptors, message="t.M"))
        assert compile_mapping(descriptor).arrow_type.names[:2] == ["x", "__prefix__"]
        again = find_descriptor(closure(descriptor))
        assert compile_mapping(again).arrow_type.names[:2] == ["x", "__prefix__"]


def with_an_option_of_others(kind: str, value: str) -> SourceSchema:
    own = f"""syntax = "proto3"; package o; import "google/protobuf/descriptor.proto";
              message Own {{ string name = 1; }}
              extend google.protobuf.FieldOptions {{ {kind} theirs = {COLUMN_NUMBER}; }}"""
    text = f"""syntax = "proto3"; package t; import "own.proto"; message M {{ int32 a = 1 [(o.theirs) = {value}]; }}"""
    return compile_text(text, imports={"own.proto": own})


@pytest.mark.parametrize(
    ("kind", "value"), [("Own", '{ name: "theirs" }'), ("int32", "1"), ("string", '"\\x0a\\x01b"')]
)
def test_an_option_of_others_under_our_number_is_theirs(kind: str, value: str) -> None:
    source = with_an_option_of_others(kind, value)
    assert compile_mapping(find_descriptor(source)).arrow_type.names[0] == "a"


def test_an_option_of_others_that_ours_could_not_be(tmp_path: Path) -> None:
    # In a process that hasn't imported `archiver.options_pb2`, with which protobuf itself would refuse the bytes.
    file = tmp_path / "own.binpb"
    file.write_bytes(with_an_option_of_others("string", '"\\nx"').descriptor_set)
    code = f"""
import pathlib
from schema_mapping import SourceSchema, compile_mapping
from schema_mapping.protobuf.descriptors import find_descriptor
source = SourceSchema(descriptor_set=pathlib.Path({str(file)!r}).read_bytes(), message="t.M")
print(compile_mapping(find_descriptor(source)).arrow_type.names[0])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "a\n"


def test_comments_make_no_version_and_options_do() -> None:
    plain = type_graph(find_descriptor(with_options("int32 a = 1;"))).fingerprint()
    assert type_graph(find_descriptor(with_options("// said\n int32 a = 1; // and more\n"))).fingerprint() == plain
    assert type_graph(find_descriptor(with_options(f"int32 a = 1 {named('a')};"))).fingerprint() != plain
    assert type_graph(find_descriptor(with_options(f"int32 a = 1 {named('b')};"))).fingerprint() != plain
    assert type_graph(find_descriptor(with_options(f"int32 a = 1 {EXCLUDE};"))).fingerprint() != plain


def test_several_messages_have_options_and_extensions_each() -> None:
    base = """syntax = "proto2"; package t; import "archiver/options.proto";
              message M { optional int32 a = 1 [(archiver.column).exclude = true]; optional int32 b = 2; extensions 9; }
              message N { optional M m = 1 [(archiver.column).name = "inner"]; }
              extend M { optional int32 more = 9; }"""
    members = (compile_text(base, "t.M", extensions=("t.more",)), compile_text(base, "t.N"))
    first = assign(LedgerState(), value=UnionSchema(members=members))
    mapping = first.row.value
    assert isinstance(mapping, UnionMapping)
    values = [b"\x08\x01\x10\x02\x48\x03", b"\x0a\x06\x08\x01\x10\x02\x48\x03"]
    which = [mapping.messages.index(name) for name in ("t.M", "t.N")]
    rows = mapping.decode(pa.array(values, pa.binary()), which=np.array(which, np.int16))
    left, second = rows.to_pylist()
    assert left["m"] == {"b": 2, "more": 3, "__unrecognized__": b"\x08\x01"}
    assert second["n"] == {
        "inner": {"b": 2, "__unrecognized__": b"\x08\x01\x48\x03"},
        "__unrecognized__": None,
    }
    assert (left["__raw__"], second["__raw__"]) == (None, None)
    assert mapping.encode(rows).to_pylist() == values
    shown = outline(first.state).roots[1].columns
    excluded = {column.name: [field.source_name for field in column.excluded] for column in shown}
    assert (excluded["m"], excluded["n"]) == (["a"], [])
