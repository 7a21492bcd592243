"""Avro files with one block per record."""

from __future__ import annotations

import io
import json
from pathlib import Path

import fastavro

_SYNC = bytes(range(16))


def in_blocks(path: Path) -> list[int]:
    """Return the ends of header and blocks."""
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    schema = json.loads(reader.metadata["avro.schema"])
    meta = {name: value for name, value in reader.metadata.items() if not name.startswith("avro.")}
    out = io.BytesIO()
    fastavro.writer(out, schema, reader, codec="deflate", metadata=meta, sync_interval=1, sync_marker=_SYNC)
    path.write_bytes(out.getvalue())
    parts = out.getvalue().split(_SYNC)[:-1]
    ends, at = [], 0
    for part in parts:
        at += len(part) + len(_SYNC)
        ends.append(at)
    return ends


def without_last_block(path: Path) -> None:
    """The result looks like a whole, shorter file."""
    ends = in_blocks(path)
    path.write_bytes(path.read_bytes()[: ends[-2]])
