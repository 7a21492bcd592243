"""Extensions are columns if listed, else bytes in `__unrecognized__`."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf import message_factory

from schema_mapping import LedgerState, SourceSchema, assign, compile_mapping
from schema_mapping.columns.evolution import ChangeKind
from schema_mapping.errors import DescriptorError
from schema_mapping.formats import mapping_from_json
from schema_mapping.outline import outline
from schema_mapping.protobuf.descriptors import closure, find_descriptor
from schema_mapping.protobuf.message_mapping import MessageMapping
from tests.support.schemas.proto_text import compile_text

ORDER = """syntax = "proto2"; package t; import "more.proto"; import "base.proto";
message M { optional int32 a = 1; optional b.Line line = 2; repeated b.Line lines = 3; extensions 100 to max; }
message Nest { extend M { optional string note = 101; } extend b.Line { repeated int32 sizes = 50 [packed = true]; } }
message Set { option message_set_wire_format = true; extensions 4 to max; }
extend Set { optional Nest member = 7; }
extend M { optional Nest elsewhere = 300; }
extend Far { optional int32 far = 9; } message Far { extensions 9; }
"""
BASE = 'syntax = "proto2"; package b; message Line { optional int32 price = 1; extensions 50 to 60; }'
MORE = """syntax = "proto2"; package x; import "base.proto";
extend b.Line {
  // The rebate, in percent.
  optional int32 rebate = 51; optional b.Line inner = 52; }
extend b.Line { optional int32 PRICE = 53; }"""
IMPORTS = {"base.proto": BASE, "more.proto": MORE}
ALL = ("t.Nest.note", "t.Nest.sizes", "x.rebate")


def order(*extensions: str) -> SourceSchema:
    return compile_text(ORDER, imports=IMPORTS, extensions=extensions)


def mapped(*extensions: str) -> MessageMapping:
    return compile_mapping(find_descriptor(order(*extensions)), extensions=extensions)


def value() -> bytes:
    # As C++ and Java write it: ascending by number, extensions among the fields.
    descriptor = find_descriptor(order(*ALL))
    message = message_factory.GetMessageClass(descriptor)(a=1)
    pool = descriptor.file.pool
    message.line.price = 5
    message.line.Extensions[pool.FindExtensionByName("x.rebate")] = -3
    message.lines.add().Extensions[pool.FindExtensionByName("t.Nest.sizes")].extend([1, 2])
    message.Extensions[pool.FindExtensionByName("t.Nest.note")] = "n"
    return message.SerializeToString()


def test_not_named_they_stay_bytes() -> None:
    mapping = mapped()
    assert mapping.arrow_type.names[:4] == ["a", "line", "lines", "__prefix__"]
    row = mapping.decode(pa.array([value()])).to_pylist()[0]
    assert row["__unrecognized__"] == b"\xaa\x06\x01n"
    assert row["__raw__"] is None


def test_named_they_are_columns_wherever_their_message_stands() -> None:
    mapping = mapped(*ALL)
    rows = mapping.decode(pa.array([value(), b""]))
    first, empty = rows.to_pylist()
    assert first["note"] == "n"
    assert first["line"] == {"price": 5, "sizes": [], "rebate": -3, "__unrecognized__": None}
    assert first["lines"] == [{"price": None, "sizes": [1, 2], "rebate": None, "__unrecognized__": None}]
    assert (first["__raw__"], first["__unrecognized__"]) == (None, None)
    assert (empty["note"], empty["line"]) == (None, None)
    assert mapping.encode(rows).to_pylist() == [value(), b""]


BETWEEN = """syntax = "proto2"; package t; message M { optional int32 last = 300; extensions 100 to 200;
              extend M { optional int32 x = 100; } extend M { optional int32 y = 101; } }"""


def test_what_cpp_writes_needs_no_raw_bytes(tmp_path: Path) -> None:
    (tmp_path / "test.proto").write_text(BETWEEN)
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{tmp_path}", "--encode=t.M", "test.proto"]
    text = b"last: 1 [t.M.y]: 3 [t.M.x]: 2"
    written = subprocess.run(command, input=text, check=True, capture_output=True, timeout=60).stdout
    source = compile_text(BETWEEN, extensions=("t.M.x", "t.M.y"))
    mapping = compile_mapping(find_descriptor(source), extensions=source.extensions)
    rows = mapping.decode(pa.array([written]))
    assert [(row["x"], row["y"], row["last"], row["__raw__"]) for row in rows.to_pylist()] == [(2, 3, 1, None)]
    assert mapping.encode(rows).to_pylist() == [written]


def test_extension_that_upb_writes_out_of_order_is_kept_raw() -> None:
    descriptor = find_descriptor(compile_text(BETWEEN, extensions=("t.M.x", "t.M.y")))
    mapping = compile_mapping(descriptor, extensions=("t.M.x", "t.M.y"))
    message = message_factory.GetMessageClass(descriptor)(last=1)
    message.Extensions[descriptor.extensions_by_name["x"]] = 2
    written = message.SerializeToString()
    ascending = b"\xa0\x06\x02\xe0\x12\x01"
    assert (written[:3], written[3:]) == (ascending[3:], ascending[:3])
    rows = mapping.decode(pa.array([written, ascending]))
    assert [(row["x"], row["last"], row["__raw__"]) for row in rows.to_pylist()] == [(2, 1, written), (2, 1, None)]
    assert mapping.encode(rows).to_pylist() == [written, ascending]


def test_an_extension_may_name_its_column_or_have_none() -> None:
    text = """syntax = "proto2"; package t; import "archiver/options.proto"; message M { extensions 1 to 9; }
              extend M { optional int32 x = 1 [(archiver.column).name = "other"];
                         optional int32 y = 2 [(archiver.column).exclude = true]; }"""
    source = compile_text(text, extensions=("t.x", "t.y"))
    mapping = compile_mapping(find_descriptor(source), extensions=source.extensions)
    assert mapping.arrow_type.names[:2] == ["other", "__prefix__"]
    assert [field.number for field in mapping.root.excluded] == [2]


def test_an_extension_brings_the_messages_it_holds() -> None:
    graph = mapped("t.elsewhere").graph
    assert set(graph.types) == {"t.M", "b.Line", "t.Nest"}
    result = {field.number: field for field in graph.types["t.M"].fields}[300]
    assert (result.name, result.extension, result.message, result.explicit_presence) == (
        "elsewhere",
        "t.elsewhere",
        "t.Nest",
        True,
    )


def test_short_names_that_clash_yield_like_any_other() -> None:
    mapping = mapped("x.PRICE")
    assert [field.name for field in mapping.arrow_type.field("line").type] == ["price", "PRICE_53", "__unrecognized__"]


def test_the_closure_brings_the_file_that_defines_them() -> None:
    mapping = mapped(*ALL)
    again = mapping_from_json(mapping.to_json())
    assert again == mapping
    assert pickle.loads(pickle.dumps(mapping)) == mapping
    source = closure(find_descriptor(order("x.rebate")), ("x.rebate",))
    assert source.extensions == ("x.rebate",)
    assert find_descriptor(source).file.pool.FindExtensionByName("x.rebate").number == 51


def test_a_file_that_nothing_imports_is_brought_too() -> None:
    alone = 'syntax = "proto2"; package t; import "base.proto"; message M { optional b.Line line = 1; }'
    both = compile_text(
        'syntax = "proto2"; package o; import "more.proto"; import "m.proto";',
        message="t.M",
        imports={**IMPORTS, "m.proto": alone},
        extensions=("x.rebate",),
    )
    mapping = compile_mapping(find_descriptor(both), extensions=both.extensions)
    assert [field.name for field in mapping.arrow_type.field("line").type][:2] == ["price", "rebate"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.rebat", "no extension 'x.rebat'; did you mean x.rebate"),
        ("rebate", "no extension 'rebate'"),
        ("t.M.a", "no extension 't.M.a'"),
        ("t.Nest", "no extension 't.Nest'"),
    ],
)
def test_a_name_that_is_no_extension_is_refused(name: str, words: str) -> None:
    with pytest.raises(DescriptorError, match=words):
        find_descriptor(order(name))
    with pytest.raises(DescriptorError, match="no such extension"):
        compile_mapping(find_descriptor(order()), extensions=[name])


def test_an_extension_of_something_else_is_refused() -> None:
    with pytest.raises(DescriptorError, match="isn't part of this one"):
        mapped("t.far")
    source = compile_text(ORDER, message="t.Set", imports=IMPORTS, extensions=("t.member",))
    with pytest.raises(DescriptorError, match="message set"):
        compile_mapping(find_descriptor(source), extensions=source.extensions)


def test_listing_an_extension_adds_and_unlisting_removes_it() -> None:
    first = assign(LedgerState(), value=order())
    second = assign(first.state, value=order("x.rebate"))
    assert [(change.kind, change.column) for change in second.changes] == [
        (ChangeKind.ADDED, "val.line.rebate"),
        (ChangeKind.ADDED, "val.lines.element.rebate"),
    ]
    assert second.iceberg_schema.find_field("val.line.rebate").doc == "The rebate, in percent."
    third = assign(second.state, value=order())
    assert (third.version, third.changes) == (1, ())
    fourth = assign(second.state, value=order("t.Nest.note"))
    assert {(change.kind, change.column) for change in fourth.changes} == {
        (ChangeKind.ADDED, "val.note"),
        (ChangeKind.REMOVED, "val.line.rebate"),
        (ChangeKind.REMOVED, "val.lines.element.rebate"),
    }
    assert outline(fourth.state).version == 3
