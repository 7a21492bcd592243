"""Delays answers to clients whose fetch queue is full, so that they don't pause (ADRs 62 and 85).

librdkafka stops fetching for a second when 100,000 records are queued (`queued.min.messages`,
`fetch.queue.backoff.ms`).
"""

from __future__ import annotations

from typing import Final

_LIBRARY: Final = "rdkafka"
_LEAST_PAUSE: Final = 0.9
_MOST_PAUSE: Final = 2.0
"""A longer pause in seconds has another reason."""
_LEAST_RECORDS_A_SECOND: Final = 50_000
"""A program that takes fewer has enough to do during a pause."""
_MORE: Final = 1.25
"""What a client is given first, by what it took: while it paused, it may have had nothing to take."""
_SEEKS: Final = 1.5
"""By how much it is given more each second until it pauses again: how fast its program is isn't known."""
_LESS: Final = 0.7
"""By how much it is given less after that: a bit less than its program takes."""
_GROWS: Final = 1.03
"""By how much it is given more in the first second from then on."""
_HASTENS: Final = 1.3
"""By how much that becomes more each second: a program that became faster isn't held back for long."""
_SECOND: Final = 1.0
MOST_WAIT: Final = 0.5
"""The longest time in seconds that a request waits: what is guessed wrongly costs no more."""


def may_pause(software: str) -> bool:
    """By the software's name and version (KIP-511)."""
    return _LIBRARY in software.lower()


class Pauses:
    """The rate in bytes a second starts at the average plus a quarter.

    It grows until a pause shows the program's pace.
    """

    __slots__ = (
        "_answered_at",
        "_asked_at",
        "_began_at",
        "_bytes",
        "_grown_at",
        "_grows",
        "_next_at",
        "_rate",
        "_records",
    )

    def __init__(self) -> None:
        self._rate = 0.0
        self._grows = _SEEKS
        self._next_at = self._grown_at = 0.0
        self._began_at = self._answered_at = self._asked_at = 0.0
        self._bytes = self._records = 0

    def delay(self, now: float) -> float:
        gap = now - self._answered_at if self._answered_at else 0.0
        if gap >= _LEAST_PAUSE:
            self._paused(now, gap)
        elif self._next_at > now >= self._grown_at + _SECOND:  # it would take more
            self._rate *= self._grows
            self._grows = min(1 + (self._grows - 1) * _HASTENS, _SEEKS)
            self._grown_at = now
        self._asked_at = now
        self._next_at = min(self._next_at, now + MOST_WAIT)  # what a larger answer would owe beyond that is forgotten
        return max(self._next_at - now, 0.0)

    def note_answer(self, size: int, records: int, now: float) -> None:
        """0 bytes: no more records, so the wait until the next fetch is no pause."""
        if not size:
            self._rate = self._next_at = 0.0
            self._begin(0.0)
            return
        self._began_at = self._began_at or now
        self._answered_at = now
        self._bytes += size
        self._records += records
        if self._rate:
            self._next_at = max(self._next_at, self._asked_at) + size / self._rate

    def _paused(self, now: float, gap: float) -> None:
        seconds = now - self._began_at
        took = self._bytes / seconds
        if gap > _MOST_PAUSE or self._records < _LEAST_RECORDS_A_SECOND * seconds:
            self._rate = 0.0
        elif not self._rate:
            self._rate, self._grows = took * _MORE, _SEEKS
        else:
            self._rate, self._grows = max(took, self._rate * _LESS), _GROWS
        self._next_at = self._grown_at = now
        self._begin(now)

    def _begin(self, now: float) -> None:
        self._began_at = now
        self._answered_at = self._asked_at = 0.0
        self._bytes = self._records = 0
