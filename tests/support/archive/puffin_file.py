"""Deletion vectors in Puffin files, and their manifest entries."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyroaring import BitMap

_PUFFIN: Final = b"PFA1"
_MAGIC: Final = bytes.fromhex("d1d33964")


@dataclass(frozen=True, slots=True)
class WrittenVector:
    data_file: str
    offset: int
    size: int
    rows: int


def vector(positions: Iterable[int]) -> bytes:
    expected = sorted(positions)
    bitmap = b""
    keys = sorted({value >> 32 for value in expected})
    for key in keys:
        result = BitMap(value & 0xFFFF_FFFF for value in expected if value >> 32 == key)
        result.run_optimize()
        bitmap += key.to_bytes(4, "little") + result.serialize()
    return framed(len(keys).to_bytes(8, "little") + bitmap)


def framed(bitmap: bytes, *, magic: bytes = _MAGIC) -> bytes:
    checked = magic + bitmap
    return len(checked).to_bytes(4, "big") + checked + zlib.crc32(checked).to_bytes(4, "big")


def write_vectors(path: Path, positions: Mapping[str, Iterable[int]]) -> list[WrittenVector]:
    data, places = _PUFFIN, list[WrittenVector]()
    for data_file, value in positions.items():
        rows = list(value)
        blob = vector(rows)
        places.append(WrittenVector(data_file, len(data), len(blob), len(rows)))
        data += blob
    blobs = [
        {
            "type": "deletion-vector-v1",
            "fields": [2147483645],
            "snapshot-id": -1,
            "sequence-number": -1,
            "offset": position.offset,
            "length": position.size,
            "properties": {"referenced-data-file": position.data_file, "cardinality": str(position.rows)},
        }
        for position in places
    ]
    footer = json.dumps({"blobs": blobs}).encode()
    path.write_bytes(data + _PUFFIN + footer + len(footer).to_bytes(4, "little") + bytes(4) + _PUFFIN)
    return places


def vector_entry(path: Path, place: WrittenVector, partition: int, **more: Any) -> DataFile:
    events: dict[str, Any] = {
        "content": DataFileContent.POSITION_DELETES,
        "file_path": path.as_uri(),
        "file_format": FileFormat.PUFFIN,
        "partition": Record(partition),
        "record_count": place.rows,
        "file_size_in_bytes": path.stat().st_size,
        "referenced_data_file": place.data_file,
        "content_offset": place.offset,
        "content_size_in_bytes": place.size,
    }
    file = DataFile.from_args(3, **events | more)
    file.spec_id = 0
    return file
