"""The header `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import requests

ASKS_TO_WAIT: Final = (429, 503)
"""Status codes of answers that may carry the header: too many requests, and service unavailable."""


def retry_after_seconds(response: requests.Response) -> float:
    """0 if absent or unreadable."""
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
    def __init__(self) -> None:
        self._until = 0.0

    def note(self, response: requests.Response, *_: Any, **__: Any) -> None:
        """Answers without a pause end an earlier one."""
        seconds = retry_after_seconds(response)
        self._until = time.monotonic() + seconds if seconds else 0.0

    def seconds(self) -> float:
        return max(0.0, self._until - time.monotonic())
