"""A blob in a file's body, found by a key in the footer: value sets, and checksums of bloom filters.

Other readers skip it. It is Thrift's compact protocol in zstd. The footer has its position and CRC-32.
"""

from __future__ import annotations

import struct as binary
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Self

import zstandard

from archiver.storage.parquet.compact_thrift import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    Fields,
    ThriftError,
    listed,
    number,
    packed,
)
from archiver.storage.parquet.thrift_reader import read_struct
from archiver.storage.value_sets import ValueSets, bytes_of

FOOTER_KEY: Final = "archiver.index"
LARGEST: Final = 16 << 20
"""Bytes of a blob that is read, unpacked."""
UNPACKED: Final = 4
"""Bytes of values for each byte of their share: they are packed."""
MOST_UNPACKED: Final = 512 << 10
"""Bytes of all sets of a file, unpacked: a reader has them in memory, as some 10 times as many."""
SEGMENT: Final = 4 << 10
"""Bytes of a filter with a checksum. Filters are smaller, or a multiple."""

# By their ids and kinds: of the blob,
_SETS, _CHECKS = (1, LIST), (2, LIST)
# of a set: the field, and its values,
_FIELD, _TEXTS, _NUMBERS = (1, I32), (2, LIST), (3, LIST)
# of a filter's checksums.
_GROUP, _COLUMN, _SUMS = (1, I32), (2, I32), (3, BINARY)

Checks = Mapping[tuple[int, int], bytes]
"""CRC-32 of each segment of a filter, by row group and column."""


@dataclass(frozen=True, slots=True)
class IndexBlob:
    """Empty for files without a blob."""

    sets: ValueSets = field(default_factory=ValueSets)
    checks: Checks = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Raise ThriftError for other bytes."""
        try:
            if zstandard.frame_content_size(data) > LARGEST:  # it would be unpacked in spite of the limit
                raise ThriftError
            plain = zstandard.ZstdDecompressor().decompress(data, max_output_size=LARGEST)
            fields, _ = read_struct(memoryview(plain))
            return cls(
                ValueSets(dict(map(_parsed_set, listed(fields, _SETS, STRUCT)))),
                {
                    (number(it, _GROUP), number(it, _COLUMN)): bytes(it.get(_SUMS, b""))
                    for it in listed(fields, _CHECKS, STRUCT)
                },
            )
        except (zstandard.ZstdError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise ThriftError from error


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """As the footer states it."""

    start: int
    size: int
    checksum: int

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Raise ThriftError for other texts."""
        try:
            start, size, checksum = text.decode("ascii").split(":")
            return cls(int(start), int(size), int(checksum, 16))
        except ValueError as error:
            raise ThriftError from error

    @property
    def text(self) -> str:
        return f"{self.start}:{self.size}:{self.checksum:08x}"

    def read(self, pages_end: int, read: Callable[[int, int], bytes]) -> IndexBlob:
        """Raises ThriftError if the blob isn't as written, and the errors of `read`."""
        if not 0 <= self.start < self.start + self.size <= pages_end or self.size > LARGEST:
            raise ThriftError
        data = bytes(read(self.start, self.start + self.size))
        if zlib.crc32(data) != self.checksum:
            raise ThriftError
        return IndexBlob.parse(data)


def blob_of(
    sets: Mapping[int, frozenset[int | bytes]], checks: Checks, limit: int
) -> tuple[bytes, Mapping[int, frozenset[int | bytes]]]:
    """The largest sets are left out if `limit` bytes are too few."""
    kept, left = {}, min(limit * UNPACKED, MOST_UNPACKED)
    for weight, identifier in sorted((4 + bytes_of(values), identifier) for identifier, values in sets.items()):
        left -= weight
        if left >= 0:
            kept[identifier] = sets[identifier]
    while kept and len(_packed(kept, {})) > limit:
        for identifier in list(kept)[len(kept) * 3 // 4 :]:
            del kept[identifier]
    return (_packed(kept, checks) if kept or checks else b""), kept


def segment_sums(bits: bytes) -> bytes:
    """One CRC-32 per segment."""
    sums = [zlib.crc32(bits[start : start + SEGMENT]) for start in range(0, len(bits), SEGMENT)]
    return binary.pack(f"<{len(sums)}I", *sums)


def is_as_written(segment: bytes, sums: bytes, index: int) -> bool:
    return len(sums) >= 4 * (index + 1) and binary.unpack_from("<I", sums, 4 * index)[0] == zlib.crc32(segment)


def _packed(sets: Mapping[int, frozenset[int | bytes]], checks: Checks) -> bytes:
    fields: Fields = {
        _SETS: (STRUCT, [_set(identifier, values) for identifier, values in sorted(sets.items())]),
        _CHECKS: (
            STRUCT,
            [
                {_GROUP: group, _COLUMN: column, _SUMS: sums}
                for (group, column), sums in sorted(checks.items(), key=lambda item: item[0])
            ],
        ),
    }
    return zstandard.ZstdCompressor(1).compress(packed(fields))


def _set(identifier: int, values: Iterable[int | bytes]) -> Fields:
    texts = sorted(value for value in values if isinstance(value, bytes))
    numbers = sorted(value for value in values if isinstance(value, int))
    fields: Fields = {_FIELD: identifier}
    if texts:
        fields[_TEXTS] = BINARY, texts
    if numbers:
        fields[_NUMBERS] = I64, numbers
    return fields


def _parsed_set(fields: Fields) -> tuple[int, frozenset[int] | frozenset[bytes]]:
    texts = listed(fields, _TEXTS, BINARY)
    if texts:
        return number(fields, _FIELD), frozenset(map(bytes, texts))
    return number(fields, _FIELD), frozenset(listed(fields, _NUMBERS, I64))
