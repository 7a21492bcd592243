"""A client's pace, from an answer to its next request."""

from __future__ import annotations

from typing import Final

SOON_SECONDS: Final = 2.0
_LEAST_SECONDS: Final = 1e-3


class ClientPace:
    __slots__ = ("_answered_at", "_size")

    def __init__(self) -> None:
        self._answered_at = 0.0
        self._size = 0

    def takes_soon(self, now: float) -> int | None:
        """Call it when a request comes. None if the last answer had no records."""
        if not self._size:
            return None
        return round(self._size * SOON_SECONDS / max(now - self._answered_at, _LEAST_SECONDS))

    def note_answer(self, size: int, now: float) -> None:
        self._size, self._answered_at = size, now
