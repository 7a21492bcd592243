"""What a server asks of those it turned away: the header `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import requests

ASKS_TO_WAIT: Final = (429, 503)
"""Answers that may carry the header: too many requests, and service unavailable."""


def retry_after_seconds(response: requests.Response) -> float:
    """How long the server asks to be left alone; 0 where it doesn't say, or nothing that can be read."""
    text = response.headers.get("Retry-After", "").strip()
    if response.status_code not in ASKS_TO_WAIT or not text:
        return 0.0
    if text.isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    return max(0.0, ((until if until.tzinfo else until.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds())


class AskedPause:
    """Remembers of a session's answers how long its server wants to be left alone."""

    def __init__(self) -> None:
        self._until = 0.0

    def note(self, response: requests.Response, *_: Any, **__: Any) -> None:
        """Hear an answer: a hook of requests. One that asks for nothing ends what was asked for before."""
        seconds = retry_after_seconds(response)
        self._until = time.monotonic() + seconds if seconds else 0.0

    def seconds(self) -> float:
        """What is left of it."""
        return max(0.0, self._until - time.monotonic())
