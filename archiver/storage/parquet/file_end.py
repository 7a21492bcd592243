"""A Parquet footer, preceded by the archiver's checksum of it.

Parquet has none, and a flipped bit may hide rows or end the process. Files of other writers have none.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from typing import Final, Self

from archiver.errors import BadSegment
from archiver.storage.exact_reads import Stream, read_exactly

TAIL: Final = 64 << 10
"""Most footers are smaller: one read brings them."""
MAGIC: Final = b"PAR1"
"""The first and last bytes of a file."""
_LENGTH: Final = struct.Struct("<I")
_ENDING: Final = _LENGTH.size + len(MAGIC)
"""The size of the footer, and the magic bytes."""
_CHECKSUM: Final = struct.Struct("<I8s")
_MARK: Final = b"\xa5ArchCRC"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEnd:
    """`footer_start` is None if the file is too short for its stated footer."""

    data: bytes
    start: int
    footer_start: int | None

    @classmethod
    def read(cls, stream: Stream) -> Self:
        """Read at least the footer, or a file of at most `TAIL` bytes. Raises as `read_exactly`."""
        size = stream.seek(0, os.SEEK_END)
        start = max(0, size - TAIL)
        data = read_exactly(stream, start, size)
        if len(data) < _ENDING:
            return cls(data=data, start=start, footer_start=None)
        (length,) = _LENGTH.unpack_from(data, len(data) - _ENDING)
        footer_start = size - _ENDING - length
        if footer_start < 0:
            return cls(data=data, start=start, footer_start=None)
        needed = max(0, footer_start - _CHECKSUM.size)
        if needed < start:
            data, start = read_exactly(stream, needed, start) + data, needed
        return cls(data=data, start=start, footer_start=footer_start)

    @classmethod
    def of_footer(cls, footer: bytes) -> Self:
        return cls(data=footer + _LENGTH.pack(len(footer)) + MAGIC, start=0, footer_start=0)

    @property
    def is_whole(self) -> bool:
        return self.start == 0

    @property
    def footer(self) -> memoryview:
        return self._covered[:-_ENDING]

    @property
    def with_checksum(self) -> bytes:
        covered = self._covered
        return _CHECKSUM.pack(zlib.crc32(covered), _MARK) + covered

    def check(self, path: str) -> bool:
        """False without a checksum. Raises BadSegment if it doesn't match."""
        if self.footer_start is None or self.footer_start < _CHECKSUM.size:
            return False
        expected, mark = _CHECKSUM.unpack_from(self.data, self.footer_start - self.start - _CHECKSUM.size)
        if mark != _MARK:
            return False
        checksum = zlib.crc32(self._covered)
        if checksum != expected:
            raise BadSegment(
                "the file's footer isn't as it was written: restore the file from a backup, or archive its range again",
                file=path,
                checksum=f"{checksum:08x}",
                expected=f"{expected:08x}",
            )
        return True

    @property
    def _covered(self) -> memoryview:
        return memoryview(self.data)[len(self.data) if self.footer_start is None else self.footer_start - self.start :]
