"""A connection's identity: none yet, a principal, or an expired one."""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from archiver.access.principals import ANONYMOUS, Principal
from archiver.access.rules import Access
from archiver.errors import AuthenticationFailed
from archiver.serve.security.exchanges import Exchange, Mechanisms, MechanismWord
from archiver.serve.security.tokens import VerifiedToken

_LEAST_SECONDS: Final = 1.0
_TOLD_SHARE: Final = 0.9


class Shaken(Enum):
    """The outcome of a SaslHandshake."""

    BEGUN = auto()
    UNKNOWN_MECHANISM = auto()
    OUT_OF_PLACE = auto()


@dataclass(frozen=True, slots=True)
class Granted:
    """When `is_done`, the login lasts `seconds` (0: without end)."""

    answer: bytes
    is_done: bool = False
    seconds: float = 0.0


class Session:
    """For one event loop. `access` is None before authentication."""

    def __init__(
        self,
        *,
        mechanisms: Mechanisms | None,
        access_of: Callable[[Principal], Access],
        principal: Principal | None,
        most_seconds: float = 0.0,
    ) -> None:
        """With `mechanisms`, the client must authenticate, and again after `most_seconds` (0: never)."""
        self._mechanisms = mechanisms
        self._access_of = access_of
        self._most_seconds = most_seconds
        self._exchange: Exchange | None = None
        self._mechanism = ""
        self._ends_at: float | None = None
        self.access = None if principal is None or mechanisms is not None else access_of(principal)
        self.is_raw = False
        """Whether the client's next messages come without a request's header, as they did before SaslAuthenticate."""
        self.is_over = False
        """Whether the connection must be closed after the last answer."""

    @property
    def mechanisms(self) -> Sequence[MechanismWord]:
        return () if self._mechanisms is None else self._mechanisms.enabled

    @property
    def ends_at(self) -> float:
        """On the loop's clock; infinite without an end."""
        return math.inf if self._ends_at is None else self._ends_at

    @property
    def has_expired(self) -> bool:
        return self._ends_at is not None and asyncio.get_running_loop().time() >= self._ends_at

    def handshake(self, mechanism: str, *, is_raw: bool) -> Shaken:
        """Re-authentication needs the same mechanism."""
        is_again = self.access is not None
        if self._mechanisms is None or self._exchange is not None or (is_again and (self._ends_at is None or is_raw)):
            self.is_over = self.access is None
            return Shaken.OUT_OF_PLACE
        exchange = self._mechanisms.begin(mechanism)
        if exchange is None or (is_again and mechanism != self._mechanism):
            self.is_over = True
            return Shaken.UNKNOWN_MECHANISM
        self._exchange, self._mechanism, self.is_raw = exchange, mechanism, is_raw
        return Shaken.BEGUN

    @property
    def is_exchanging(self) -> bool:
        return self._exchange is not None

    def user_in(self, message: bytes) -> str | None:
        return None if self._exchange is None else self._exchange.user_in(message)

    async def authenticate(self, message: bytes) -> Granted:
        """AuthenticationFailed ends the session."""
        assert self._exchange is not None
        try:
            step = await self._exchange.step(message)
            if step.name is None:
                return Granted(step.answer)
            principal = self._same(Principal(step.name))
        except AuthenticationFailed:
            self.is_over = True
            raise
        self.access = self._access_of(principal)
        self._exchange, self.is_raw = None, False
        stated, kept = self._seconds(step.verified)
        self._ends_at = asyncio.get_running_loop().time() + kept if kept else None
        return Granted(step.answer, is_done=True, seconds=stated)

    def _same(self, principal: Principal) -> Principal:
        if self.access is not None and self.access.principal != principal:
            raise AuthenticationFailed("a connection can't change whom it belongs to")
        return principal

    def _seconds(self, verified: VerifiedToken | None) -> tuple[float, float]:
        ends = [(self._most_seconds * _TOLD_SHARE, self._most_seconds)] if self._most_seconds else []
        if verified is not None:
            left = verified.expires - time.time()
            ends.append((left, left + verified.grace))
        if not ends:
            return 0.0, 0.0
        stated, kept = (max(_LEAST_SECONDS, min(seconds)) for seconds in zip(*ends, strict=True))
        return stated, kept


class OpenDoor:
    """Admits all clients without authentication, as `User:ANONYMOUS`."""

    context: ssl.SSLContext | None = None

    def session(self, _certificate: bytes | None) -> Session:
        return Session(mechanisms=None, access_of=lambda client: Access(client, ()), principal=ANONYMOUS)
