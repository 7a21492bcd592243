"""Schemas from `.proto` files, compiled by the protoc inside grpc_tools; comments are kept in the result."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from archiver.errors import ConfigError
from archiver.schemas.files import checked, read_schema_file
from schema_mapping.protobuf.descriptors import SourceSchema

TIMEOUT_SECONDS: Final = 120


def compile_proto(
    paths: Path | Sequence[Path], message: str, imports: Sequence[Path] = (), extensions: Sequence[str] = ()
) -> SourceSchema:
    """The schema of `message` from a `.proto` file, or several, with the extensions that become columns.

    `imports` are the folders that `import` lines start from; a file's own folder is one where none of them holds it,
    and Google's well-known types and `archiver/options.proto` are always found. Raises ConfigError for a missing file
    or folder, with the compiler's own words for a file that doesn't compile, and for a message or an extension that
    isn't there.
    """
    files = (paths,) if isinstance(paths, Path) else tuple(paths)
    for file in files:
        read_schema_file(file)
    for folder in imports:
        if not folder.is_dir():
            raise ConfigError("there is no such import folder", folder=str(folder), file=str(files[0]))
    compiled = _run_protoc([file.resolve() for file in files], imports)
    return checked(SourceSchema(descriptor_set=compiled, message=message, extensions=tuple(extensions)), files[0])


def compile_files(folder: Path, names: Sequence[str], ready: FileDescriptorSet) -> bytes:
    """A serialized descriptor set of files in a folder and all they import; `ready` are imports that need no compiling.

    Raises ConfigError with the compiler's own words.
    """
    with tempfile.TemporaryDirectory(prefix="archiver-protoc-") as scratch:
        more = []
        if ready.file:
            known = Path(scratch) / "ready.binpb"
            known.write_bytes(ready.SerializeToString())
            more = [f"--descriptor_set_in={known}"]
        return _protoc(names[0], [str(each) for each in names], [folder], more)


def _run_protoc(files: Sequence[Path], imports: Sequence[Path]) -> bytes:
    roots = [folder.resolve() for folder in imports]
    for file in files:
        if not any(file.is_relative_to(root) for root in roots):
            roots.append(file.parent)
    return _protoc(files[0], [str(file) for file in files], roots, [])


def _protoc(path: Path | str, files: Sequence[str], roots: Sequence[Path], more: Sequence[str]) -> bytes:
    built_in = (str(resources.files("grpc_tools") / "_proto"), str(resources.files("schema_mapping") / "proto"))
    with tempfile.TemporaryDirectory(prefix="archiver-protoc-") as scratch:
        result = Path(scratch) / "schema.binpb"
        command = [
            *(sys.executable, "-m", "grpc_tools.protoc", "--include_imports", "--include_source_info", *more),
            *(f"--proto_path={root}" for root in (*roots, *built_in)),
            f"--descriptor_set_out={result}",
            *files,
        ]
        done = _run(command, path)
        if done.returncode != 0:
            raise ConfigError(f"protoc refuses the schema:\n{done.stderr.strip()}{_hint(done.stderr)}", file=str(path))
        return result.read_bytes()


def _run(command: Sequence[str], path: Path | str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - our own interpreter and paths, no shell
            command, check=False, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"protoc took longer than {TIMEOUT_SECONDS} s", file=str(path)) from None


def _hint(stderr: str) -> str:
    if "File not found" not in stderr:
        return ""
    return "\nSet `imports` to the folders that the `import` lines start from."
