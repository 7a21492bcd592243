"""Looks up a value in a chunk's bloom filter (BloomFilter.md) by one small, checked read."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow.parquet as pq

from archiver.storage.parquet.columns.bloom_probe import block_start, may_contain
from archiver.storage.parquet.columns.file_writer import filter_header
from archiver.storage.parquet.index_blob import SEGMENT, is_as_written

_BLOCK: Final = 32
_PLAIN: Final = "NONE"
_LONG: Final = struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class FilterProbe:
    """`value` is plainly encoded."""

    value: bytes
    bits_start: int
    bits_size: int

    @classmethod
    def of_chunk(cls, chunk: pq.ColumnChunkMetaData, value: int | str | bytes) -> FilterProbe | None:
        """None without a filter, or if values of this type aren't hashed plainly.

        The archiver's filters have a power of two of bytes, after a header of known size.
        """
        start, length = chunk.bloom_filter_offset, chunk.bloom_filter_length
        plain = _plain(chunk, value)
        if start is None or length is None or plain is None:
            return None
        size = 1 << (length.bit_length() - 1)
        header = len(filter_header(size))
        return cls(plain, start + header, size) if length == header + size else None

    def ask(self, read: Callable[[int, int], bytes], sums: bytes) -> bool | None:
        """None if the filter's bytes don't fit the checksums `sums`.

        `read` returns a range of the file. It is called once, for a segment.
        """
        at = block_start(self.value, self.bits_size)
        start = at - at % SEGMENT
        segment = bytes(read(self.bits_start + start, self.bits_start + min(start + SEGMENT, self.bits_size)))
        if not is_as_written(segment, sums, start // SEGMENT):
            return None
        return may_contain(segment[at - start : at - start + _BLOCK], self.value)


def _plain(chunk: pq.ColumnChunkMetaData, value: int | str | bytes) -> bytes | None:
    kind = chunk.statistics.logical_type.type if chunk.statistics is not None else _PLAIN
    match chunk.physical_type, value:
        case "BYTE_ARRAY", str():
            return value.encode()
        case "BYTE_ARRAY" | "FIXED_LEN_BYTE_ARRAY", bytes():
            return value
        case "INT64", int() if not isinstance(value, bool) and kind in (_PLAIN, "INT"):
            return _LONG.pack(value)
        case _:
            return None
