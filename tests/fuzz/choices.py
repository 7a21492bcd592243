"""Choices that the bytes of a fuzzer's input make, so that coverage guides what is generated from them."""

from __future__ import annotations

SMALL = 255


class FuzzedChoices:
    """Takes each choice from the next bytes; when they are used up, the lowest."""

    def __init__(self, octets: bytes) -> None:
        self._octets = octets
        self._at = 0

    def integer(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        taken = self.rest(1 if high - low <= SMALL else 8)
        return low + int.from_bytes(taken, "little") % (high - low + 1)

    def data(self, size: int) -> bytes:
        """So many bytes, zeros at the end where there are too few."""
        return self.rest(size).ljust(size, b"\0")

    def rest(self, most: int = 1 << 30) -> bytes:
        """The next bytes, as many as there are."""
        taken = self._octets[self._at : self._at + most]
        self._at += len(taken)
        return taken
