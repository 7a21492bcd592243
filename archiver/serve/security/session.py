"""The identity of a connection: none yet, a principal, or one whose time is over."""

from __future__ import annotations

import asyncio
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
    """What became of a handshake."""

    BEGUN = auto()
    UNKNOWN_MECHANISM = auto()
    OUT_OF_PLACE = auto()


@dataclass(frozen=True, slots=True)
class Granted:
    """The answer to a client's message, and, once the client is known, how many seconds that holds (0: no end)."""

    answer: bytes
    is_done: bool = False
    seconds: float = 0.0


class Session:
    """Whose connection it is. `access` is None until that is known. Use it from one event loop."""

    def __init__(
        self,
        *,
        mechanisms: Mechanisms | None,
        access_of: Callable[[Principal], Access],
        principal: Principal | None,
        most_seconds: float = 0.0,
    ) -> None:
        """`principal` is who is known already, if anybody. With `mechanisms`, a client has to say who it is.

        After `most_seconds` it has to say so again; 0 means never.
        """
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
        """The mechanisms that a client may choose from."""
        return () if self._mechanisms is None else self._mechanisms.enabled

    @property
    def has_expired(self) -> bool:
        """Whether the client has to say again who it is."""
        return self._ends_at is not None and asyncio.get_running_loop().time() >= self._ends_at

    def handshake(self, mechanism: str, *, is_raw: bool) -> Shaken:
        """Begin an exchange. An authenticated client may repeat it when its time ends, with the same mechanism."""
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
        """Whether an exchange has begun."""
        return self._exchange is not None

    def user_in(self, message: bytes) -> str | None:
        """Who the client says it is, if the message has what could be guessed."""
        return None if self._exchange is None else self._exchange.user_in(message)

    async def authenticate(self, message: bytes) -> Granted:
        """Take the next message of an exchange that has begun. AuthenticationFailed ends the session."""
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
        """The lifetime that a client is sent, and the lifetime that is enforced: slightly late clients stay connected.

        Both are 0 without an end.
        """
        ends = [(self._most_seconds * _TOLD_SHARE, self._most_seconds)] if self._most_seconds else []
        if verified is not None:
            left = verified.expires - time.time()
            ends.append((left, left + verified.grace))
        if not ends:
            return 0.0, 0.0
        stated, kept = (max(_LEAST_SECONDS, min(seconds)) for seconds in zip(*ends, strict=True))
        return stated, kept


class OpenDoor:
    """Lets all clients in without authentication, as `User:ANONYMOUS`."""

    context: ssl.SSLContext | None = None

    def session(self, _certificate: bytes | None) -> Session:
        """The session of a new connection."""
        return Session(mechanisms=None, access_of=lambda one: Access(one, ()), principal=ANONYMOUS)
