"""Generated code with our option imports."""

from __future__ import annotations

import sys
from importlib import import_module, resources
from pathlib import Path

import pyarrow as pa
import pytest
from grpc_tools import protoc

from schema_mapping import compile_mapping

TEXT = """syntax = "proto3"; package generated_for_test; import "archiver/options.proto";
message Order {
  string customer_id = 1 [(archiver.column).name = "customer"];
  bytes signature = 2 [(archiver.column).exclude = true];
}"""


def test_generated_code_finds_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "generated_for_test.proto").write_text(TEXT)
    roots = (tmp_path, resources.files("grpc_tools") / "_proto", resources.files("schema_mapping") / "proto")
    command = ["protoc", *(f"-I{root}" for root in roots), f"--python_out={tmp_path}", "generated_for_test.proto"]
    assert protoc.main(command) == 0
    monkeypatch.syspath_prepend(tmp_path)
    order = import_module("generated_for_test_pb2").Order
    option = sys.modules["archiver.options_pb2"].column  # type: ignore[attr-defined]
    fields = order.DESCRIPTOR.fields_by_name
    assert fields["customer_id"].GetOptions().Extensions[option].name == "customer"
    assert fields["signature"].GetOptions().Extensions[option].exclude
    mapping = compile_mapping(order.DESCRIPTOR)
    value = order(customer_id="c", signature=b"s").SerializeToString()
    row = mapping.decode(pa.array([value])).to_pylist()[0]
    assert (row["customer"], row["__unrecognized__"], row["__raw__"]) == ("c", b"\x12\x01s", None)
