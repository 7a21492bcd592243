"""Page headers, which pyarrow doesn't show."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

TYPE = 0x15
"""What precedes a page's type, as the first field of its header."""

COUNTS = (b"\x1c\x15", b"\x2c\x15")
"""What precedes the number of values of a data page with a checksum, and of one without: its own header's begin."""


@dataclass(frozen=True, slots=True)
class PageHeader:
    column: str
    start: int
    end: int
    is_data: bool
    unpacked: int


def page_headers(data: bytes) -> Iterator[PageHeader]:
    footer = pq.read_metadata(io.BytesIO(data))
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for chunk in map(group.column, range(group.num_columns)):
            start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            end = start + chunk.total_compressed_size
            while start < end:
                kind, unpacked, size, length = _page_header(data[start : start + 16_384])
                yield PageHeader(chunk.path_in_schema, start, start + length, kind in (0, 3), unpacked)
                start += length + size


def page_sizes(path: Path, column: str) -> list[int]:
    return [header.unpacked for header in page_headers(path.read_bytes()) if header.is_data and header.column == column]


def without_page(data: bytes, page: PageHeader) -> bytes:
    """Readers skip pages of unknown type."""
    assert data[page.start] == TYPE
    return data[: page.start + 1] + bytes((data[page.start + 1] ^ 8,)) + data[page.start + 2 :]


def with_other_count(data: bytes, page: PageHeader, bit: int) -> bytes:
    """The sign stays."""
    position = 1 + min(at for value in COUNTS if (at := data.find(value, page.start, page.end)) >= 0)
    return data[: position + 1] + bytes((data[position + 1] ^ (2 << bit),)) + data[position + 2 :]


def _page_header(data: bytes) -> tuple[int, int, int, int]:
    values: dict[int, int] = {}
    at = _read_struct(data, 0, values)
    return values[1], values[2], values[3], at


def _read_struct(data: bytes, at: int, values: dict[int, int] | None) -> int:
    field_id = 0
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return at
        kind = head & 15
        if head >> 4:
            field_id += head >> 4
        else:
            raw, at = _varint(data, at)
            field_id = (raw >> 1) ^ -(raw & 1)
        if kind in (1, 2):
            continue
        if kind in (3, 4, 5, 6):
            raw, at = _varint(data, at)
            if values is not None:
                values[field_id] = (raw >> 1) ^ -(raw & 1)
        elif kind == 8:
            size, at = _varint(data, at)
            at += size
        elif kind == 12:
            at = _read_struct(data, at, None)
        else:
            raise AssertionError(f"unexpected Thrift type {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
