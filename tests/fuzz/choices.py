"""Choices by a fuzzer's input, so that coverage guides them."""

from __future__ import annotations

SMALL = 255


class FuzzedChoices:
    """Read choices from the bytes; after their end the lowest."""

    def __init__(self, octets: bytes) -> None:
        self._octets = octets
        self._at = 0

    def integer(self, low: int, high: int) -> int:
        taken = self.rest(1 if high - low <= SMALL else 8)
        return low + int.from_bytes(taken, "little") % (high - low + 1)

    def data(self, size: int) -> bytes:
        return self.rest(size).ljust(size, b"\0")

    def rest(self, most: int = 1 << 30) -> bytes:
        taken = self._octets[self._at : self._at + most]
        self._at += len(taken)
        return taken
