"""Kafka's compression codecs."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Codec(IntEnum):
    """The number is in the batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def word(self) -> str:
        """As in settings: zstd."""
        return self.name.lower()

    @classmethod
    def named(cls, word: str) -> Codec:
        """Raises KeyError."""
        return cls[word.upper()]


CODEC_WORDS: Final = tuple(codec.word for codec in Codec)
