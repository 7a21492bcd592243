""".proto text, compiled in this process."""

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
    """proto3 and package `t` by default."""
    if not text.lstrip().startswith(("syntax", "edition")):
        text = f'syntax = "proto3"; package t; {text}'
    compiled = _protoc(text, tuple((imports or {}).items()))
    return SourceSchema(descriptor_set=compiled, message=message, extensions=extensions)


def fields(body: str) -> SourceSchema:
    return compile_text(f"message M {{ {body} }}")


def descriptor_of(text: str, message: str = "t.M") -> Descriptor:
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
