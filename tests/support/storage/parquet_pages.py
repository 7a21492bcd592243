"""Reads the headers of pages in Parquet files (Thrift's compact protocol), which pyarrow doesn't show."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq


def page_sizes(path: Path, column: str) -> list[int]:
    """Uncompressed sizes of a column's data pages."""
    footer = pq.read_metadata(path)
    found = []
    with path.open("rb") as file:
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            chunk = next(group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == column)
            start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
            end = start + chunk.total_compressed_size
            while start < end:
                file.seek(start)
                head = file.read(16_384)
                kind, uncompressed, compressed, length = _page_header(head)
                start += length + compressed
                if kind in (0, 3):
                    found.append(uncompressed)
    return found


def _page_header(data: bytes) -> tuple[int, int, int, int]:
    """Page type, sizes and the header's own length."""
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
