"""Digests of records: 32 hexadecimal digits, a number modulo 2^128.

The digest of several ranges is the sum of theirs (docs/digest.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

DIGEST_ALGORITHM: Final = "record-v1-murmur3-x64-128"
"""How a record is encoded and hashed. Digests of different algorithms can't be compared."""

_MODULUS: Final = 1 << 128


def digest_text(total: int) -> str:
    return f"{total % _MODULUS:032x}"


def add_digests(digests: Iterable[str | None]) -> str | None:
    """The sum, None if a digest is unknown, zeros if there is none."""
    given = tuple(digests)
    texts = tuple(text for text in given if text is not None)
    return digest_text(sum(int(text, 16) for text in texts)) if len(texts) == len(given) else None


def subtract_digest(total: str, part: str) -> str:
    return digest_text(int(total, 16) - int(part, 16))
