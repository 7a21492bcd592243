"""Decompresses batches into one bounded scratch buffer."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

import cramjam
import numpy as np

from archiver.codecs import Codec
from archiver.wire.stream_quirks import gzip_end, lz4_end, with_header_checksum
from archiver.wire.zstd_frame import inflate_frame

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = 16
_XERIAL_LENGTH: Final = 4
_FIRST_WITH_ZSTD: Final = 2
_GROWTH: Final = 4
_FIRST_SCRATCH: Final = 256 << 10
_MAX_SNAPPY_RATIO: Final = 22
"""Snappy's densest element encodes 64 bytes in 3. A stream that claims a higher ratio is corrupt."""


class InflateError(Exception):
    """An invalid stream, or one above the limit when decompressed."""


def _whole(payload: memoryview, _limit: int) -> int:
    return len(payload)


class Inflater:
    """A result is valid until the next call."""

    __slots__ = ("_limit", "_scratch")

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._scratch = _untouched(min(_FIRST_SCRATCH, limit))

    def inflate(self, codec: int, payload: memoryview, *, magic: int = 2) -> memoryview:
        """Decompress at most `limit` bytes. Raises `InflateError`, also for more."""
        match codec:
            case Codec.NONE:
                return payload
            case Codec.GZIP:
                return self._stream(cramjam.gzip.decompress_into, payload, gzip_end)
            case Codec.LZ4 if magic == 0:
                return self._stream(cramjam.lz4.decompress_into, with_header_checksum(payload), lz4_end)
            case Codec.LZ4:
                return self._stream(cramjam.lz4.decompress_into, payload, lz4_end)
            case Codec.ZSTD if magic >= _FIRST_WITH_ZSTD:
                return self._zstd(payload)
            case Codec.SNAPPY:
                return self._snappy(payload)
            case _:
                raise InflateError(f"codec {codec} does not exist in format v{magic}")

    def _zstd(self, payload: memoryview) -> memoryview:
        self._grow(len(payload) * _GROWTH)
        inflated = inflate_frame(payload, self._scratch)
        return inflated if inflated is not None else self._stream(cramjam.zstd.decompress_into, payload)

    def _stream(
        self,
        decompress_into: Callable[[memoryview, memoryview], int],
        payload: memoryview,
        end_of: Callable[[memoryview, int], int] = _whole,
    ) -> memoryview:
        # These streams needn't give their size, and a buffer that is too small raises the same error as corrupt bytes.
        # So
        # the buffer grows up to the limit before an error is final; corrupt bytes fail fast each time. Then it is tried
        # again without the bytes after the end of the stream, which Java's reader ignores.
        self._grow(len(payload) * _GROWTH)
        while True:
            try:
                return self._scratch[: decompress_into(payload, self._scratch)]
            except cramjam.DecompressionError as error:
                if len(self._scratch) >= self._limit:
                    end = end_of(payload, self._limit)
                    if 0 < end < len(payload):
                        payload = payload[:end]
                        continue
                    raise InflateError(f"corrupt, or larger than {self._limit} bytes decompressed: {error}") from error
            self._grow(len(self._scratch) * _GROWTH)

    def _snappy(self, payload: memoryview) -> memoryview:
        blocks = tuple(_xerial_blocks(payload)) if payload[:8].tobytes() == _XERIAL_MAGIC else (payload,)
        try:
            sizes = [cramjam.snappy.decompress_raw_len(block) for block in blocks]
            total = sum(sizes)
            if total > self._limit or total > _MAX_SNAPPY_RATIO * len(payload):
                raise InflateError(f"claims {total} bytes decompressed from {len(payload)}, the limit is {self._limit}")
            self._grow(total)
            at = 0
            for block, size in zip(blocks, sizes, strict=True):
                at += cramjam.snappy.decompress_raw_into(block, self._scratch[at : at + size])
        except cramjam.DecompressionError as error:
            raise InflateError(f"corrupt: {error}") from error
        return self._scratch[:at]

    def _grow(self, size: int) -> None:
        if size > len(self._scratch):
            self._scratch = _untouched(min(size, self._limit))


def _untouched(size: int) -> memoryview:
    return np.empty(size, dtype=np.uint8).data


def _xerial_blocks(payload: memoryview) -> Iterator[memoryview]:
    """A truncated length at the end is ignored."""
    at = _XERIAL_HEADER
    if len(payload) < at:
        raise InflateError("snappy frame header is cut off")
    while len(payload) - at >= _XERIAL_LENGTH:
        if payload[at : at + len(_XERIAL_MAGIC)].tobytes() == _XERIAL_MAGIC:
            at += _XERIAL_HEADER
            continue
        (size,) = struct.unpack_from(">i", payload, at)
        at += _XERIAL_LENGTH
        if size < 0 or size > len(payload) - at:
            raise InflateError(f"snappy block of {size} bytes does not fit in the payload")
        yield payload[at : at + size]
        at += size
