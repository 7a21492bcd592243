"""Schemas shown without a registry."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from archiver.cli.schema_diff import Schemas, compare, proposed_schemas
from archiver.config import TopicConfig
from archiver.errors import ConfigError
from archiver.terminal.schema_screen import history_text, outline_tree, summary, verdict_lines
from archiver.terminal.schema_words import describe, tell
from catalog.model import VersionRecord
from schema_mapping import LedgerState, MappingOptions, UnionSchema, assign
from schema_mapping.columns.compatibility import CompatibilityRule, broken_rules
from schema_mapping.columns.evolution import Change, ChangeKind
from schema_mapping.outline import ColumnOutline, outline
from tests.support.schemas.proto_text import compile_text

TREE = """
message M {
  uint32 id = 1;  // who
  repeated string tags = 2;
  map<string, N> by = 3;
  M up = 4;
  E state = 5;
  message N { int32 n = 1; }
  enum E { ZERO = 0; }
}
"""
TOPIC = TopicConfig.model_validate({"name": "orders", "table": "kafka.orders"})


def text_of(view: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def find(columns: tuple[ColumnOutline, ...], name: str) -> ColumnOutline:
    return next(column for column in columns if column.name == name)


def test_the_tree_tells_all_of_a_column() -> None:
    tree = outline(assign(LedgerState(), value=compile_text(TREE)).state)
    key, val = tree.roots
    assert (key.message, val.message) == (None, "t.M")
    column = find(val.columns, "id")
    assert (column.type, column.number, column.source_name, column.protobuf) == ("int", 1, "id", "uint32")
    assert (column.since, column.removed, column.cut, column.doc) == (1, None, None, "who")
    assert find(val.columns, "tags").protobuf == "repeated string"
    assert find(val.columns, "by").protobuf == "map<string, t.M.N>"
    assert find(find(val.columns, "by").columns, "value").columns[0].protobuf == "int32"
    assert find(val.columns, "state").protobuf == "t.M.E"
    assert find(val.columns, "up").cut == "its type is already on the path from the root"
    assert find(val.columns, "__raw__").number is None


def test_the_tree_is_readable() -> None:
    first = assign(LedgerState(), value=compile_text(TREE))
    second = assign(first.state, value=compile_text(TREE.replace("repeated string tags = 2;", "int32 more = 9;")))
    text = text_of(outline_tree("orders", "kafka.orders", outline(second.state)))
    assert "orders in kafka.orders, schema version 2" in text
    assert "= 1 id: uint32  since 1  who" in text
    assert "= 9 more: int32  since 2" in text
    assert "since 1  removed in 2" in text
    assert "val.up  t.M: its type is already on the path from the root" in text


OPTIONS = """syntax = "proto2"; package t; import "archiver/options.proto";
message M {
  optional int32 id = 1 [(archiver.column).name = "number"];
  repeated N lines = 2;
  optional string secret = 3 [(archiver.column).exclude = true];
  optional int32 old = 4;
  extensions 100;
  extend M { optional N more = 100; }
}
message N { optional int32 x = 1; repeated int32 y = 2 [(archiver.column).exclude = true]; }
"""


def test_the_tree_shows_what_a_proto_says_about_columns() -> None:
    drop = MappingOptions(keep_removed=False)
    first = assign(LedgerState(), value=compile_text(OPTIONS, extensions=("t.M.more",)), options=drop)
    after = OPTIONS.replace("optional int32 old = 4;", "")
    second = assign(first.state, value=compile_text(after, extensions=("t.M.more",)), options=drop)
    text = text_of(outline_tree("orders", "kafka.orders", outline(second.state)))
    assert re.search(r"number  #\d+  int  = 1 id: int32  since 1\n", text)
    assert re.search(r"more  #\d+  struct  = 100 \[t\.M\.more\]: t\.N  since 1\n", text)
    assert "= 3 secret: string  excluded (bytes in __unrecognized__)" in text
    assert text.count("= 2 y: repeated int32  excluded (bytes in __unrecognized__)") == 2
    assert re.search(r"old  #\d+  int  since 1  dropped in 2\n", text)
    val = outline(second.state).to_json()["roots"][1]
    assert val["excluded"] == ({"number": 3, "source_name": "secret", "protobuf": "string"},)


def test_the_tree_is_json() -> None:
    tree = outline(assign(LedgerState(), key=compile_text(TREE)).state).to_json()
    assert tree["version"] == 1
    assert tree["roots"][0]["columns"][0]["protobuf"] == "uint32"


@pytest.mark.parametrize("kind", list(ChangeKind))
def test_every_kind_of_change_has_words(kind: ChangeKind) -> None:
    names = kind is ChangeKind.RENAMED
    change = Change(
        kind=kind,
        root="val",
        path=(1,),
        field_id=7,
        column="val.a",
        before="old" if names else "uint",
        after="new" if names else "long",
    )
    for text in (describe(change), tell(change)):
        assert "val.a (id 7)" in text
        assert "uint" not in text
    assert Change.from_json(change.to_json()) == change


def test_history_lists_versions_with_their_changes() -> None:
    first = assign(LedgerState(), value=compile_text("message M { int32 a = 1; }"))
    second = assign(first.state, value=compile_text("message M { int64 b = 1; }"))
    records = [
        VersionRecord(
            version=entry.version,
            created=datetime(2026, 1, entry.version, tzinfo=UTC),
            fingerprint="f",
            changes=entry.changes,
        )
        for entry in (first, second)
    ]
    text = text_of(history_text("orders", records))
    assert "Version 1, first used 2026-01-01 00:00:00 UTC: 7 columns added" in text
    assert re.search(r"added val\.a \(id \d+\), int", text)
    assert "Version 2, first used 2026-01-02 00:00:00 UTC: 1 column renamed, 1 widened" in text
    assert re.search(r"widened val\.b \(id \d+\) from int to long: older rows are read as long", text)
    assert re.search(r"renamed a to val\.b \(id \d+\): the same column, also in older rows", text)


def test_a_version_without_changes_says_so() -> None:
    assert summary(()) == "no column changed"


@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        ("int32 a = 1; string b = 2; int32 c = 3;", []),
        ("int64 a = 1; string b = 2;", []),
        ("int32 x = 1; string b = 2;", ["renamed"]),
        ("int32 a = 1;", ["removed"]),
        ("string a = 1; string b = 2;", ["replaced"]),
        ("string x = 1;", ["replaced", "removed"]),
    ],
)
def test_rules_of_compatibility(fields: str, broken: list[str]) -> None:
    state = assign(LedgerState(), value=compile_text("message M { int32 a = 1; string b = 2; }")).state
    proposed = compile_text(f"message M {{ {fields} }}")
    changes = compare(state, Schemas(key=None, value=proposed), TOPIC).changes
    violations = broken_rules(changes)
    assert [str(violation.rule) for violation in violations] == broken
    allowed = broken_rules(changes, allowed=[violation.rule for violation in violations])
    assert allowed == ()
    text = "\n".join(line.plain for line in verdict_lines(violations))
    assert all(f"breaks rule {rule}" in text for rule in broken)
    assert text.startswith("Not compatible" if broken else "Compatible")


def test_a_topic_that_would_become_raw_is_not_compatible() -> None:
    state = assign(LedgerState(), value=compile_text("message M { int32 a = 1; string b = 2; }")).state
    changes = compare(state, Schemas(key=None, value=None), TOPIC).changes
    assert {rule.rule for rule in broken_rules(changes)} == {CompatibilityRule.REMOVED}


def test_dropped_and_cut_columns_break_rules_too() -> None:
    kinds = {ChangeKind(str(rule)) for rule in CompatibilityRule}
    assert kinds == {
        ChangeKind.RENAMED,
        ChangeKind.REMOVED,
        ChangeKind.DROPPED,
        ChangeKind.REPLACED,
        ChangeKind.CUT,
    }


def test_diff_says_what_a_deployment_would_do() -> None:
    state = assign(LedgerState(), value=compile_text("message M { int32 a = 1; }")).state
    proposed = compile_text("message M { int32 a = 1; string b = 2; M up = 3; }")
    difference = compare(state, Schemas(key=None, value=proposed), TOPIC)
    assert difference.summary == "would become version 2"
    assert [(change.kind, change.column) for change in difference.changes] == [("added", "val.b"), ("added", "val.up")]
    assert difference.cuts == ("val.up  t.M: its type is already on the path from the root",)
    same = compare(state, Schemas(key=None, value=compile_text("message M { int32 a = 1; }")), TOPIC)
    assert same.summary == "the newest schema, version 1: nothing changes"
    newer = assign(state, value=proposed).state
    older = compare(newer, Schemas(key=None, value=compile_text("message M { int32 a = 1; }")), TOPIC)
    assert older.summary == "a schema seen before, version 1: nothing changes unless it comes to stay"


def test_diff_of_a_file_keeps_the_other_side_and_the_message(tmp_path: Path) -> None:
    key, value = compile_text("message K { int32 k = 1; }", "t.K"), compile_text("message M { int32 a = 1; }")
    state = assign(LedgerState(), key=key, value=value, options=MappingOptions()).state
    file = tmp_path / "next.proto"
    file.write_text('syntax = "proto3"; package t; message M { int64 a = 1; } message K { string k = 1; }')
    difference = compare(state, proposed_schemas(TOPIC, state, file=file, message=None, of_key=False), TOPIC)
    assert [(change.kind, change.column) for change in difference.changes] == [("promoted", "val.a")]
    difference = compare(state, proposed_schemas(TOPIC, state, file=file, message="t.K", of_key=True), TOPIC)
    assert {(change.kind, change.column) for change in difference.changes} >= {("replaced", "key.k")}


def test_diff_of_a_raw_topic_needs_a_message(tmp_path: Path) -> None:
    state = assign(LedgerState()).state
    with pytest.raises(ConfigError, match="--message"):
        proposed_schemas(TOPIC, state, file=tmp_path / "x.binpb", message=None, of_key=False)


def test_diff_of_one_of_several_messages(tmp_path: Path) -> None:
    members = tuple(compile_text(f"message {name} {{ int32 a = 1; }}", f"t.{name}") for name in ("M", "N"))
    state = assign(LedgerState(), value=UnionSchema(members=members)).state
    assert "= t.M  since 1" in text_of(outline_tree("orders", "kafka.orders", outline(state)))
    file = tmp_path / "next.proto"
    file.write_text('syntax = "proto3"; package t; message M { int64 a = 1; } message K { string k = 1; }')

    def changes(message: str) -> list[tuple[str, str]]:
        proposed = proposed_schemas(TOPIC, state, file=file, message=message, of_key=False)
        return [(change.kind, change.column) for change in compare(state, proposed, TOPIC).changes]

    assert changes("t.M") == [("promoted", "val.m.a")]
    assert changes("t.K") == [("added", "val.k")]
    with pytest.raises(ConfigError, match=r"several message types: name the message with --message"):
        proposed_schemas(TOPIC, state, file=file, message=None, of_key=False)


def test_diff_of_a_coerced_topic_knows_its_envelope(tmp_path: Path) -> None:
    value = replace(compile_text("message M { int32 a = 1; }"), envelope=b"\0\0\0\0\1\0")
    state = assign(LedgerState(), value=value, options=MappingOptions()).state
    file = tmp_path / "same.proto"
    file.write_text('syntax = "proto3"; package t; message M { int32 a = 1; }')
    proposed = proposed_schemas(TOPIC, state, file=file, message=None, of_key=False)
    assert compare(state, proposed, TOPIC).summary == "the newest schema, version 1: nothing changes"
