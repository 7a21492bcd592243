"""Schemas from files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from archiver.config.formats import ProtobufFormat, RawFormat
from archiver.config.model import TopicSection
from archiver.errors import ConfigError
from archiver.schemas import FORMATS, SchemaPlace, mapping_options
from archiver.schemas.protobuf.schema_files import compile_proto, read_descriptor_set, run_apart, why_not_compiled
from schema_mapping import MappingOptions, compile_mapping
from schema_mapping.columns.options import NEW_TABLES
from schema_mapping.protobuf.descriptors import find_descriptor

PLACE = SchemaPlace(topic="orders", part="value")
COMMON = 'syntax = "proto3"; package shop; message Money { int64 units = 1; }'
ORDER = """syntax = "proto3"; package shop;
import "shop/money.proto";
import "google/protobuf/timestamp.proto";
// What a customer wants.
message Order { Money total = 1; google.protobuf.Timestamp at = 2; }
"""


@pytest.fixture
def protos(tmp_path: Path) -> Path:
    folder = tmp_path / "with space" / "shop"
    folder.mkdir(parents=True)
    (folder / "money.proto").write_text(COMMON)
    (folder / "order.proto").write_text(ORDER)
    return folder


def refused(path: Path, message: str, *imports: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        compile_proto(path, message, imports)
    return str(caught.value)


def test_a_proto_with_imports(protos: Path) -> None:
    source = compile_proto(protos / "order.proto", "shop.Order", (protos.parent,))
    assert compile_mapping(find_descriptor(source)).arrow_type.names[:2] == ["total", "at"]
    names = [file.name for file in FileDescriptorSet.FromString(source.descriptor_set).file]
    assert names == ["shop/money.proto", "google/protobuf/timestamp.proto", "shop/order.proto"]
    assert b"What a customer wants." in source.descriptor_set


def test_a_proto_alone(protos: Path) -> None:
    assert compile_proto(protos / "money.proto", "shop.Money").message == "shop.Money"


def test_a_relative_path(protos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(protos.parent)
    assert compile_proto(Path("shop/order.proto"), "shop.Order", (Path(),)).message == "shop.Order"


def test_a_missing_import_tells_of_imports(protos: Path) -> None:
    refusal = refused(protos / "order.proto", "shop.Order")
    assert "shop/money.proto: File not found." in refusal
    assert "Set `imports`" in refusal
    assert str(protos / "order.proto") in refusal


def test_the_compilers_own_words(protos: Path) -> None:
    (protos / "bad.proto").write_text('syntax = "proto3";\nmessage M { int32 = 1; }')
    refusal = refused(protos / "bad.proto", "M")
    assert "bad.proto:2:19: Expected field name." in refusal
    assert "imports" not in refusal


def test_missing_files_and_folders(tmp_path: Path, protos: Path) -> None:
    assert "no such schema file" in refused(tmp_path / "none.proto", "M")
    assert "cannot be read: Is a directory" in refused(tmp_path, "M")
    assert "no such import folder" in refused(protos / "money.proto", "shop.Money", tmp_path / "none")


def test_a_missing_message_lists_near_ones(protos: Path) -> None:
    refusal = refused(protos / "money.proto", "shop.Mony")
    assert "did you mean shop.Money?" in refusal
    assert "money.proto" in refusal


def test_a_descriptor_set(protos: Path, tmp_path: Path) -> None:
    written = tmp_path / "shop.binpb"
    compiled = compile_proto(protos / "order.proto", "shop.Order", (protos.parent,))
    written.write_bytes(compiled.descriptor_set)
    assert read_descriptor_set(written, "shop.Order") == compiled


def test_descriptor_sets_that_will_not_do(protos: Path, tmp_path: Path) -> None:
    path = tmp_path / "shop.binpb"

    def told(content: bytes | None) -> str:
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            read_descriptor_set(path, "shop.Order")
        assert f"file='{path}'" in str(caught.value)
        return str(caught.value)

    whole = compile_proto(protos / "order.proto", "shop.Order", (protos.parent,)).descriptor_set
    alone = FileDescriptorSet(file=[f for f in FileDescriptorSet.FromString(whole).file if "money" not in f.name])
    assert "no such schema file" in told(None)
    assert "no FileDescriptorSet" in told(b'syntax = "proto3";')
    assert "holds no file" in told(b"")
    assert "schema_file='shop/money.proto', imported_by='shop/order.proto'" in told(alone.SerializeToString())


def test_from_settings(protos: Path) -> None:
    settings = ProtobufFormat(
        format="protobuf",
        message="shop.Order",
        proto=protos / "order.proto",
        imports=(protos.parent,),
        max_columns=50,
    )
    compiled = FORMATS.source_schema(settings, PLACE)
    assert compiled is not None
    assert compiled.message == "shop.Order"
    path = protos / "shop.binpb"
    path.write_bytes(compiled.descriptor_set)
    assert (
        FORMATS.source_schema(ProtobufFormat(format="protobuf", message="shop.Order", descriptors=path), PLACE)
        == compiled
    )
    assert FORMATS.source_schema(RawFormat(), PLACE) is None
    assert mapping_options(TopicSection(value=settings)) == replace(NEW_TABLES, max_columns=50)
    assert mapping_options(TopicSection()) == MappingOptions()
    chosen = TopicSection(
        key=settings, keep_removed=False, expand_cuts=True, well_known_types="native", uint64="decimal"
    )
    assert mapping_options(chosen) == MappingOptions(
        max_columns=50, keep_removed=False, expand_cuts=True, well_known_types="native", uint64="decimal"
    )


OWN = """syntax = "proto2"; package shop; import "archiver/options.proto";
message Cart { optional int32 id = 1 [(archiver.column).name = "cart"]; extensions 10 to 20; }"""
REBATE = 'syntax = "proto2"; package rebate; import "own.proto"; extend shop.Cart { optional int32 percent = 10; }'


def test_extensions_from_a_file_that_the_first_does_not_import(tmp_path: Path) -> None:
    (tmp_path / "own.proto").write_text(OWN)
    (tmp_path / "rebate.proto").write_text(REBATE)
    files = [tmp_path / "own.proto", tmp_path / "rebate.proto"]
    settings = ProtobufFormat(format="protobuf", message="shop.Cart", proto=files, extensions=["rebate.percent"])
    source = FORMATS.source_schema(settings, PLACE)
    assert source is not None
    assert compile_mapping(find_descriptor(source), extensions=source.extensions).arrow_type.names[:2] == [
        *("cart", "percent")
    ]
    path = tmp_path / "shop.binpb"
    path.write_bytes(source.descriptor_set)
    again = ProtobufFormat(format="protobuf", message="shop.Cart", descriptors=path, extensions=["rebate.percent"])
    assert FORMATS.source_schema(again, PLACE) == source
    alone = ProtobufFormat(format="protobuf", message="shop.Cart", proto=files[:1], extensions=["rebate.percent"])
    with pytest.raises(ConfigError, match=r"no extension 'rebate\.percent'.*own\.proto"):
        FORMATS.source_schema(alone, PLACE)


def test_a_column_name_that_cannot_be_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "own.proto").write_text(OWN.replace('"cart"', '"a.b"'))
    with pytest.raises(ConfigError, match=r"letters, digits and underscores.*shop\.Cart\.id"):
        compile_proto(tmp_path / "own.proto", "shop.Cart")


def test_protoc_runs_in_a_session_of_its_own() -> None:
    """`timeout`, shells and service managers send SIGTERM to a job's whole process group."""
    shown = run_apart([sys.executable, "-c", "import os; print(os.getsid(0) == os.getpid())"], "a.proto")
    assert (shown.returncode, shown.stdout) == (0, "True\n")


def test_signal_is_no_refusal_of_the_schema() -> None:
    assert why_not_compiled(-15, "") == "protoc was ended by SIGTERM before it had read the schema: run it again"
    assert why_not_compiled(1, "a.proto:1: bad\n") == "protoc refuses the schema:\na.proto:1: bad"
