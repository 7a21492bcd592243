"""A request and its answer, without payloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NONE: Final = "none"
"""The name of no error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """`seconds` are between complete request and complete answer, with throttling."""

    api: str
    version: int
    client: str
    client_id: str
    seconds: float
    sent_bytes: int
    error: str = NONE
    principal: str | None = None
