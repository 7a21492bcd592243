"""Digests of records as files, snapshots and the registry keep them: 32 hexadecimal digits, a number modulo 2^128.

Digests add up: the digest of several ranges is the sum of their digests. docs/digest.md defines what is hashed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

DIGEST_ALGORITHM: Final = "record-v1-murmur3-x64-128"
"""How a record is encoded and hashed. Digests of different algorithms can't be compared."""

_MODULUS: Final = 1 << 128


def digest_text(total: int) -> str:
    """The text of a sum of hashes, taken modulo 2^128."""
    return f"{total % _MODULUS:032x}"


def add_digests(digests: Iterable[str | None]) -> str | None:
    """The digest of all together. None where one of them is unknown; zeros where there are none."""
    known = tuple(digests)
    texts = tuple(text for text in known if text is not None)
    return digest_text(sum(int(text, 16) for text in texts)) if len(texts) == len(known) else None


def subtract_digest(total: str, part: str) -> str:
    """The digest of what is left of `total` without `part`."""
    return digest_text(int(total, 16) - int(part, 16))
