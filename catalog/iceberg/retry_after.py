"""The header `Retry-After` of an answer: how long the server asks a client to wait (RFC 9110, 10.2.3).

It is a number of seconds or a date.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import requests

ASKS_TO_WAIT: Final = (429, 503)
"""Status codes of answers that may carry the header: too many requests, and service unavailable."""


def retry_after_seconds(response: requests.Response) -> float:
    """How long the server asks to wait. 0 where it doesn't say, or where the header can't be read."""
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
    """The pause that the server of a session last asked for."""

    def __init__(self) -> None:
        self._until = 0.0

    def note(self, response: requests.Response, *_: Any, **__: Any) -> None:
        """Note an answer: a hook of requests. An answer that asks for no pause ends an earlier one."""
        seconds = retry_after_seconds(response)
        self._until = time.monotonic() + seconds if seconds else 0.0

    def seconds(self) -> float:
        """How many seconds of the pause remain."""
        return max(0.0, self._until - time.monotonic())
