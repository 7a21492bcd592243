"""Manifests of very many files from the bytes of one entry: writing each would take hours."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from pyiceberg.avro.file import AvroFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestFile
from pyiceberg.typedef import Record

from tests.support.archive.listed_table import ListedTable

DAY = 19_675
DAY_MICROS = 86_400 * 10**6
PARTITIONS = 100
ROWS = 1_000
SCALARS = range(100, 164)
ENTRIES_A_BLOCK = 20
_DIGITS = b"##########"
_MARKS = {name: bytes([0xA0 + number] * 8) for number, name in enumerate(("low", "high", "since", "until", "noise"))}
_PARTITION = b"\xb7" * 4
_DATA = "s3://lake/warehouse/kafka/orders/data/ingest_day=2026-01-31/orders-00007-01HXXXXXXXXXXXXX"


def many_files(folder: Path, files: range, *, manifest_files: int) -> ListedTable:
    """Entries have bounds of five columns of `kafka` and of 64 more."""
    listed = ListedTable(folder)
    listed.add([_template()])
    (template,) = listed.manifests
    listed.manifests = []
    header, entry = _parts(listed.io, template)
    for first in range(0, len(files), manifest_files):
        numbers = files[first : first + manifest_files]
        listed.manifests.append(_manifest(folder, template, header, entry, numbers))
    return listed


def _template() -> DataFile:
    mark = _MARKS
    noise = dict.fromkeys(SCALARS, mark["noise"])
    every = [10, 11, 12, 13, 14, *SCALARS]
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{_DATA}{_DIGITS.decode()}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(DAY),
        record_count=ROWS,
        file_size_in_bytes=100 * ROWS,
        column_sizes={field_id: 70_000 + 997 * field_id for field_id in every},
        value_counts=dict.fromkeys(every, ROWS),
        null_value_counts=dict.fromkeys(every, 0) | {17: ROWS, 18: ROWS},
        lower_bounds={10: _PARTITION, 11: mark["low"], 12: mark["since"], 13: mark["since"], 14: mark["low"], **noise},
        upper_bounds={
            10: _PARTITION,
            11: mark["high"],
            12: mark["until"],
            13: mark["until"],
            14: mark["high"],
            **noise,
        },
        split_offsets=[4],
        sort_order_id=1,
    )


def _parts(io: PyArrowFileIO, manifest: ManifestFile) -> tuple[bytes, bytes]:
    whole = Path(manifest.manifest_path.removeprefix("file://")).read_bytes()
    with AvroFile[Record](io.new_input(manifest.manifest_path)) as reader:
        header = whole[: reader.decoder.tell()]
        reader.decoder.read_int()
        return header, zlib.decompress(reader.decoder.read_bytes(), -zlib.MAX_WBITS)


def _manifest(folder: Path, like: ManifestFile, header: bytes, entry: bytes, numbers: range) -> ManifestFile:
    path = folder / f"many-{uuid4()}.avro"
    sync = header[-16:]
    with path.open("wb") as stream:
        stream.write(header)
        for count, block in _blocks(_entries(entry, numbers)):
            packer = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
            packed = packer.compress(block) + packer.flush()
            stream.write(_varint(count) + _varint(len(packed)) + packed + sync)
    summary = (like.partitions or [])[0]
    return ManifestFile.from_args(
        manifest_path=path.as_uri(),
        manifest_length=path.stat().st_size,
        partition_spec_id=0,
        content=like.content,
        sequence_number=1,
        min_sequence_number=1,
        added_snapshot_id=1,
        added_files_count=len(numbers),
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=len(numbers) * ROWS,
        existing_rows_count=0,
        deleted_rows_count=0,
        partitions=[summary],
        key_metadata=None,
    )


def _entries(entry: bytes, numbers: range) -> npt.NDArray[np.uint8]:
    rows = np.tile(np.frombuffer(entry, np.uint8), (len(numbers), 1))
    number = np.arange(numbers.start, numbers.stop, dtype=np.int64)
    turn = number // PARTITIONS
    since = DAY * DAY_MICROS + turn * 10**6
    values = {"low": turn * ROWS, "high": turn * ROWS + ROWS - 1, "since": since, "until": since + 999_000}
    noise = np.random.default_rng(numbers.start)
    for name, mark in _MARKS.items():
        for position in _places(entry, mark):
            value = values.get(name)
            value = noise.integers(0, 2**40, len(numbers)) if value is None else value
            rows[:, position : position + 8] = value.astype("<i8").view(np.uint8).reshape(-1, 8)
    for position in _places(entry, _PARTITION):
        rows[:, position : position + 4] = (number % PARTITIONS).astype("<i4").view(np.uint8).reshape(-1, 4)
    (digits,) = _places(entry, _DIGITS)
    powers = 10 ** np.arange(len(_DIGITS) - 1, -1, -1, dtype=np.int64)
    rows[:, digits : digits + len(_DIGITS)] = number[:, None] // powers % 10 + ord("0")
    return rows


def _places(entry: bytes, mark: bytes) -> Iterator[int]:
    position = entry.find(mark)
    while position >= 0:
        yield position
        position = entry.find(mark, position + len(mark))


def _blocks(rows: npt.NDArray[np.uint8]) -> Iterator[tuple[int, bytes]]:
    for start in range(0, len(rows), ENTRIES_A_BLOCK):
        block = rows[start : start + ENTRIES_A_BLOCK]
        yield len(block), block.tobytes()


def _varint(number: int) -> bytes:
    zigzag = number << 1
    out = b""
    while zigzag > 0x7F:
        out += struct.pack("B", zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return out + struct.pack("B", zigzag)
