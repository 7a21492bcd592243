"""The compression codecs of Kafka's batches, with their numbers and names."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Codec(IntEnum):
    """The compression codec of a batch, by its number in the batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def word(self) -> str:
        """The name in options and settings, such as zstd."""
        return self.name.lower()

    @classmethod
    def named(cls, word: str) -> Codec:
        """Return the codec of this name in options and settings. Raises KeyError."""
        return cls[word.upper()]


CODEC_WORDS: Final = tuple(codec.word for codec in Codec)
