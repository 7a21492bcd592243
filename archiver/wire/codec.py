"""The codecs of the protocol, by their numbers in a batch's attributes."""

from __future__ import annotations

from enum import IntEnum


class Codec(IntEnum):
    """The compression of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
