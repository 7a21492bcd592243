"""Schemas for tests, written as .proto text and compiled by protoc in this process."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path

from google.protobuf.descriptor import Descriptor
from grpc_tools import protoc

from schema_mapping.protobuf.descriptors import SourceSchema, find_descriptor

OPTIONS = resources.files("schema_mapping") / "proto"


def compile_text(
    text: str,
    message: str = "t.M",
    imports: Mapping[str, str] | None = None,
    extensions: tuple[str, ...] = (),
) -> SourceSchema:
    """The message of a .proto whose text this is; "proto3" and package `t` unless it says otherwise."""
    if not text.lstrip().startswith(("syntax", "edition")):
        text = f'syntax = "proto3"; package t; {text}'
    compiled = _protoc(text, tuple((imports or {}).items()))
    return SourceSchema(descriptor_set=compiled, message=message, extensions=extensions)


def fields(body: str) -> SourceSchema:
    """A proto3 message `t.M` with these fields."""
    return compile_text(f"message M {{ {body} }}")


def descriptor_of(text: str, message: str = "t.M") -> Descriptor:
    """The descriptor that `compile_text` names."""
    return find_descriptor(compile_text(text, message))


@lru_cache(maxsize=256)
def _protoc(text: str, imports: tuple[tuple[str, str], ...]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, content in (("test.proto", text), *imports):
            (root / name).write_text(content)
        result = root / "out.binpb"
        well_known = resources.files("grpc_tools") / "_proto"
        command = [
            "protoc",
            f"-I{root}",
            f"-I{well_known}",
            f"-I{OPTIONS}",
            "--include_imports",
            "--include_source_info",
        ]
        assert protoc.main([*command, f"--descriptor_set_out={result}", str(root / "test.proto")]) == 0, text
        return result.read_bytes()
