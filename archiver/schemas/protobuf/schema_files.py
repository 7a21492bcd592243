"""Read descriptor sets (`protoc --include_imports --descriptor_set_out`) and `.proto` files."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from archiver.errors import ConfigError
from archiver.schemas.schema_file import read_schema_file
from schema_mapping.errors import DescriptorError
from schema_mapping.protobuf.descriptors import SourceSchema
from schema_mapping.protobuf.type_graph import source_graph

TIMEOUT_SECONDS: Final = 120
GOOGLE_FOLDERS: Final = ("google/api/", "google/logging/type/", "google/longrunning/", "google/rpc/", "google/type/")


@dataclass(frozen=True, slots=True)
class _Root:
    folder: Path
    prefix: str = ""

    @property
    def option(self) -> str:
        return f"{self.prefix}={self.folder}" if self.prefix else str(self.folder)


@cache
def _shipped() -> tuple[_Root, ...]:
    roots = [_Root(Path(str(resources.files("grpc_tools") / "_proto")))]
    roots.append(_Root(Path(str(resources.files("schema_mapping") / "proto"))))
    spec = find_spec("google.api.annotations_pb2")
    assert spec is not None
    assert spec.origin is not None
    site = Path(spec.origin).parents[2]
    return (*roots, *(_Root(site / prefix, prefix) for prefix in GOOGLE_FOLDERS))


def read_descriptor_set(path: Path, message: str, extensions: Sequence[str] = ()) -> SourceSchema:
    """`extensions` become columns.

    Raises ConfigError if the file isn't a descriptor set, or incomplete.
    """
    source = SourceSchema(descriptor_set=read_schema_file(path), message=message, extensions=tuple(extensions))
    return checked(source, path)


def checked(source: SourceSchema, path: Path) -> SourceSchema:
    """Raises ConfigError, with the file, if something is missing."""
    try:
        source_graph(source)
    except DescriptorError as error:
        context = {name: value for name, value in error.context.items() if name != "file"}
        inner = {"schema_file": error.context["file"]} if "file" in error.context else {}
        raise ConfigError(error.message, file=str(path), **inner, **context) from error
    return source


def compile_proto(
    paths: Path | Sequence[Path], message: str, imports: Sequence[Path] = (), extensions: Sequence[str] = ()
) -> SourceSchema:
    """`extensions` become columns. Raises ConfigError, also for protoc's errors.

    `imports` are folders; if none of them holds a file, its own folder is one too.
    """
    files = (paths,) if isinstance(paths, Path) else tuple(paths)
    for file in files:
        read_schema_file(file)
    for folder in imports:
        if not folder.is_dir():
            raise ConfigError("there is no such import folder", folder=str(folder), file=str(files[0]))
    compiled = _run_protoc([file.resolve() for file in files], imports)
    return checked(SourceSchema(descriptor_set=compiled, message=message, extensions=tuple(extensions)), files[0])


def compile_files(folder: Path, names: Sequence[str], ready: FileDescriptorSet, imports: Sequence[Path] = ()) -> bytes:
    """Return a serialized descriptor set. Raises ConfigError with protoc's message.

    `ready` are compiled imports, `imports` folders.
    """
    with tempfile.TemporaryDirectory(prefix="archiver-protoc-") as scratch:
        more = []
        if ready.file:
            compiled = Path(scratch) / "ready.binpb"
            compiled.write_bytes(ready.SerializeToString())
            more = [f"--descriptor_set_in={compiled}"]
        return _protoc(names[0], [*map(str, names)], [folder, *imports], more)


def is_shipped(name: str) -> bool:
    """Google's, Confluent's, protovalidate's and the archiver's files."""
    roots = (root for root in _shipped() if name.startswith(root.prefix))
    return any((root.folder / name.removeprefix(root.prefix)).is_file() for root in roots)


def _run_protoc(files: Sequence[Path], imports: Sequence[Path]) -> bytes:
    roots = [folder.resolve() for folder in imports]
    for file in files:
        if not any(file.is_relative_to(root) for root in roots):
            roots.append(file.parent)
    return _protoc(files[0], [str(file) for file in files], roots, [])


def _protoc(path: Path | str, files: Sequence[str], roots: Sequence[Path], more: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="archiver-protoc-") as scratch:
        result = Path(scratch) / "schema.binpb"
        command = [
            *(sys.executable, "-m", "grpc_tools.protoc", "--include_imports", "--include_source_info", *more),
            *(f"--proto_path={root}" for root in roots),
            *(f"--proto_path={root.option}" for root in _shipped()),
            f"--descriptor_set_out={result}",
            *files,
        ]
        done = run_apart(command, path)
        if done.returncode != 0:
            raise ConfigError(why_not_compiled(done.returncode, done.stderr), file=str(path))
        return result.read_bytes()


def why_not_compiled(code: int, stderr: str) -> str:
    """Exit codes below 0 are signals."""
    if code < 0:
        return f"protoc was ended by {signal.Signals(-code).name} before it had read the schema: run it again"
    return f"protoc refuses the schema:\n{stderr.strip()}{_hint(stderr)}"


def run_apart(command: Sequence[str], path: Path | str) -> subprocess.CompletedProcess[str]:
    """Raises ConfigError with the schema's path if protoc takes too long."""
    try:
        return subprocess.run(  # noqa: S603 - our own interpreter and paths, no shell
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            start_new_session=True,  # signals that stop the job's process group must not fail the schema
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"protoc took longer than {TIMEOUT_SECONDS} s", file=str(path)) from None


def _hint(stderr: str) -> str:
    if "File not found" not in stderr:
        return ""
    return "\nSet `imports` to the folders that the `import` lines start from."
