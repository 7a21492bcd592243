"""A request and its answer, as operators see them: no payload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NONE: Final = "none"
"""The name of no error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One answered request. `seconds` is from the whole request to the whole answer, the client's own wait included."""

    api: str
    version: int
    client: str
    client_id: str
    seconds: float
    sent_bytes: int
    error: str = NONE
    principal: str | None = None
