"""A request and its answer without payloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NONE: Final = "none"
"""The name of no error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """`seconds` from the complete request to the complete answer, throttling included."""

    api: str
    version: int
    client: str
    client_id: str
    seconds: float
    sent_bytes: int
    error: str = NONE
    principal: str | None = None
