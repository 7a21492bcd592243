"""Writes tests/vectors/conformance: message types, and the payloads of a run.

Usage: record.py descriptors INCLUDE_FOLDER before the run, record.py payloads FILE after it. record.py compare FILE
fails if another run's payloads differ.
"""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from archiver.schemas.protobuf.schema_files import compile_files
from tests.conformance.suite import DESCRIPTORS, PAYLOADS, Payload, descriptor, read_payloads, write_payloads
from tests.support.schemas.upb_judge import parse


def write_descriptors(folder: Path) -> None:
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.proto"))
    files = FileDescriptorSet.FromString(compile_files(folder, names, FileDescriptorSet()))
    for file in files.file:
        file.ClearField("source_code_info")
    DESCRIPTORS.write_bytes(lzma.compress(files.SerializeToString(deterministic=True), preset=9))


def distinct(recorded: Path) -> list[Payload]:
    lines = sorted(set(recorded.read_text(encoding="ascii").splitlines()))
    split = [(message, bytes.fromhex(data)) for message, _, data in (line.partition(" ") for line in lines)]
    return sorted(Payload(message, data, parse(descriptor(message), data) is not None) for message, data in split)


def write_distinct(recorded: Path) -> None:
    payloads = distinct(recorded)
    write_payloads(payloads)
    print(f"{len(payloads)} distinct payloads, {PAYLOADS.stat().st_size:,} bytes")  # noqa: T201 - a script


def compare(recorded: Path) -> None:
    sent, kept = distinct(recorded), list(read_payloads())
    if sent != kept:
        raise SystemExit(
            f"the runner sent {len(sent)} distinct payloads, the vectors have {len(kept)}: scripts/conformance --record"
        )
    refused = sum(not entry.accepted for entry in kept)
    print(f"the {len(kept)} distinct payloads of tests/vectors/conformance, {refused} of them malformed")  # noqa: T201


if __name__ == "__main__":
    what, where = sys.argv[1:]
    {"descriptors": write_descriptors, "payloads": write_distinct, "compare": compare}[what](Path(where))
