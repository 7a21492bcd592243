"""Inputs in tests/vectors/fuzz: all known edges and earlier failures."""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "vectors" / "fuzz"
TARGETS = ("protobuf", "avro", "json", "json_text", "record_batch", "digest", "frames", "thrift")


def read_corpus(target: str) -> tuple[bytes, ...]:
    failed = (FOLDER / f"{target}.failures").read_text(encoding="ascii").split()
    covering = json.loads(lzma.decompress((FOLDER / f"{target}.json.xz").read_bytes()))
    return (*map(bytes.fromhex, failed), *map(base64.b64decode, covering))


def write_corpus(target: str, inputs: Iterable[bytes]) -> None:
    kept = [base64.b64encode(octets).decode() for octets in sorted(inputs)]
    (FOLDER / f"{target}.json.xz").write_bytes(lzma.compress(json.dumps(kept).encode(), preset=9))
