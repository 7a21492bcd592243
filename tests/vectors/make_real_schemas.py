"""Writes descriptor sets of tests/vectors/real_schemas out of wheels, which aren't installed.

The packages conflict: xds-protos overwrites files of googleapis-common-protos and opentelemetry-proto. Usage:
`pip download --no-deps PACKAGE==VERSION …`, then run this with the wheels.
"""

from __future__ import annotations

import ast
import lzma
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from zipfile import ZipFile

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

FOLDER = Path(__file__).parent / "real_schemas"


def of_modules(wheel: ZipFile) -> Iterator[FileDescriptorProto]:
    for name in wheel.namelist():
        if name.endswith("_pb2.py"):
            yield from _in_module(wheel.read(name))


def of_descriptors(wheel: ZipFile) -> Iterator[FileDescriptorProto]:
    """Yield files of `.descriptor` files; perfetto's repeat messages of its module."""
    for name in wheel.namelist():
        if name.endswith(".descriptor"):
            yield from FileDescriptorSet.FromString(wheel.read(name)).file


def _in_module(source: bytes) -> Iterator[FileDescriptorProto]:
    # Generated modules hand their descriptor to `AddSerializedFile` as a bytes literal.
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "AddSerializedFile"
        ):
            yield FileDescriptorProto.FromString(ast.literal_eval(node.args[0]))


def main(wheels: list[str]) -> None:
    for wheel in map(Path, wheels):
        package, version, *_ = wheel.name.split("-")
        with ZipFile(wheel) as archive:
            for suffix, files in (("", of_modules(archive)), ("-more", of_descriptors(archive))):
                _write(FOLDER / f"{package.replace('_', '-')}{suffix}-{version}.binpb.xz", files)


def _write(target: Path, files: Iterable[FileDescriptorProto]) -> None:
    by_name = {file.name: file for file in files}
    if by_name:
        ordered = FileDescriptorSet(file=[by_name[name] for name in sorted(by_name)])
        target.write_bytes(lzma.compress(ordered.SerializeToString(deterministic=True), preset=9))
        print(f"{target.name}: {target.stat().st_size:,} bytes")  # noqa: T201 - a script


if __name__ == "__main__":
    main(sys.argv[1:])
