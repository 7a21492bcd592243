"""Comments in a .proto."""

from __future__ import annotations

import pytest

from schema_mapping import LedgerState, SourceSchema, assign
from schema_mapping.columns.docs import LONGEST, one_line
from schema_mapping.protobuf.comments import read_comments
from tests.support.schemas.proto_text import compile_text

ORDER = """
// Not of a field.
message M {
  // Who placed it,
  //   and where.
  string customer = 1;
  int64 total = 2;  // in cents
  Line line = 3;
  /* By
   * warehouse. */
  map<string, Line> stock = 4;
  repeated Line lines = 5;
  message Line {
    int32 count = 1;  // pieces
    int32 plain = 2;
  }
}
"""


def docs(schema: SourceSchema, state: LedgerState | None = None) -> dict[str, str | None]:
    table = assign(state or LedgerState(), value=schema).iceberg_schema
    return {table.find_column_name(number): table.find_field(number).doc for number in table.field_ids}


def test_comments_become_docs_at_every_depth() -> None:
    result = docs(compile_text(ORDER))
    assert result["val.customer"] == "Who placed it, and where."
    assert result["val.total"] == "in cents"
    assert result["val.stock"] == "By warehouse."
    assert result["val.line.count"] == "pieces"
    assert result["val.lines.element.count"] == result["val.stock.value.count"] == "pieces"
    assert {name for name, doc in result.items() if doc} == {
        *("val.customer", "val.total", "val.stock"),
        *("val.line.count", "val.lines.element.count", "val.stock.value.count"),
    }


def test_a_comment_above_wins_over_one_beside() -> None:
    schema = compile_text("message M { int32 z = 9;\n\n// above\nint32 a = 1;  // beside\n}")
    assert read_comments(schema)["t.M", 1] == "above"


@pytest.mark.parametrize(
    ("text", "line"),
    [("", ""), (" a\n\n  b\t c \n", "a b c"), ("x" * 255, "x" * 255), ("y" * 256, "y" * 254 + "\u2026")],
)
def test_a_doc_is_one_short_line(text: str, line: str) -> None:
    assert one_line(text) == line
    assert len(one_line(text)) <= LONGEST


def test_comments_alone_make_no_version_but_come_with_the_next() -> None:
    first = assign(LedgerState(), value=compile_text("message M { int32 a = 1; // one\n}"))
    commented = assign(first.state, value=compile_text("message M { int32 a = 1; // two\n}"))
    assert (commented.version, commented.state) == (1, first.state)
    assert commented.iceberg_schema.find_field("val.a").doc == "one"
    grown = assign(first.state, value=compile_text("message M { int32 a = 1; // two\n int32 b = 2; // three\n}"))
    assert grown.iceberg_schema.find_field("val.a").doc == "two"
    assert grown.iceberg_schema.find_field("val.b").doc == "three"


def test_a_removed_column_keeps_its_comment() -> None:
    first = assign(LedgerState(), value=compile_text("message M { int32 a = 1; // one\n int32 b = 2; }"))
    later = assign(first.state, value=compile_text("message M { int32 b = 2; }"))
    assert later.iceberg_schema.find_field("val.a").doc == "removed in schema version 2: one"


def test_descriptors_without_source_info_have_no_docs() -> None:
    schema = compile_text(ORDER)
    first = assign(LedgerState(), value=schema)
    bare = SourceSchema(descriptor_set=first.row.value.descriptor_set, message="t.M")  # type: ignore[union-attr]
    assert read_comments(bare) == {}
    assert assign(LedgerState(), value=bare).fingerprint == first.fingerprint
