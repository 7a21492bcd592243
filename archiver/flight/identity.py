"""Identify callers by client certificate, bearer token, or Basic header."""

from __future__ import annotations

import base64
import binascii
import math
import secrets
import ssl
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from archiver.access.principals import ANONYMOUS
from archiver.access.rules import Access
from archiver.errors import AuthenticationFailed, IntakeFull
from archiver.serve.security import Attempts, Security, Session, Shaken

_MOST_TOKENS: Final = 10_000
MOST_ATTEMPTS: Final = 64
"""Credentials of an address that are checked or delayed at once: each takes one of `max_streams`."""
_RETRY_SECONDS: Final = 1.0
_REFUSED: Final = "the credentials are missing, unknown, wrong or too old"


class CallIdentity:
    def __init__(self, access: Access, has_expired: Callable[[], bool], ends_at: float = math.inf) -> None:
        self.access = access
        self.has_expired = has_expired
        self.ends_at = ends_at

    @property
    def owner(self) -> str:
        """The principal that owns client names. Empty for anonymous clients, who own none."""
        return "" if self.access.principal == ANONYMOUS else str(self.access.principal)


class Identities:
    """For one event loop, after `Security.begin`."""

    def __init__(self, security: Security, *, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._security = security
        self._attempts = Attempts()
        self._attempting: Counter[str] = Counter()
        self._seconds = seconds
        self._clock = clock
        self._tokens: dict[str, tuple[float, Access]] = {}

    async def identify(self, headers: Mapping[str, str], certificates: Sequence[bytes], address: str) -> CallIdentity:
        """Raises AuthenticationFailed, with one message for every reason."""
        session = self._security.session(_der(certificates))
        if session.access is not None:
            return CallIdentity(session.access, lambda: False)
        kind, _, value = headers.get("authorization", "").partition(" ")
        match kind.lower():
            case "bearer":
                identity = self._by_token(value.strip())
                if identity is not None:
                    return identity
                message = b"n,,\x01auth=Bearer " + value.strip().encode() + b"\x01\x01"
                return await self._authenticated(session, ("OAUTHBEARER", message), address)
            case "basic":
                return await self._authenticated(session, ("PLAIN", _plain_message(value)), address)
            case _:
                raise AuthenticationFailed(_REFUSED)

    def token(self, identity: CallIdentity) -> str:
        """Make a token, which ends with the token that it was made from."""
        now = self._clock()
        self._tokens = {name: kept for name, kept in self._tokens.items() if kept[0] > now}
        while len(self._tokens) >= _MOST_TOKENS:
            del self._tokens[next(iter(self._tokens))]
        token = secrets.token_urlsafe(32)
        self._tokens[token] = (min(now + self._seconds, identity.ends_at), identity.access)
        return token

    def _by_token(self, token: str) -> CallIdentity | None:
        kept = self._tokens.get(token)
        if kept is None or kept[0] <= self._clock():
            return None
        ends, access = kept
        return CallIdentity(access, lambda: self._clock() >= ends, ends)

    async def _authenticated(self, session: Session, proof: tuple[str, bytes], address: str) -> CallIdentity:
        mechanism, message = proof
        if session.handshake(mechanism, is_raw=False) is not Shaken.BEGUN:
            raise AuthenticationFailed(_REFUSED)
        if self._attempting[address] >= MOST_ATTEMPTS:
            raise IntakeFull("many credentials of this address are being checked", retry_seconds=_RETRY_SECONDS)
        self._attempting[address] += 1
        try:
            async with self._attempts.one(address, session.user_in(message)):
                granted = await session.authenticate(message)
        except AuthenticationFailed as error:
            raise AuthenticationFailed(_REFUSED) from error
        finally:
            self._attempting[address] -= 1
            if not self._attempting[address]:
                del self._attempting[address]
        if not granted.is_done or session.access is None:
            raise AuthenticationFailed(_REFUSED)
        return CallIdentity(session.access, lambda: session.has_expired, session.ends_at)


def _der(certificates: Sequence[bytes]) -> bytes | None:
    return ssl.PEM_cert_to_DER_cert(certificates[0].decode()) if certificates else None


def _plain_message(value: str) -> bytes:
    try:
        user, separator, password = base64.b64decode(value, validate=True).partition(b":")
    except (binascii.Error, ValueError):
        raise AuthenticationFailed(_REFUSED) from None
    if not separator or b"\0" in user + password:
        raise AuthenticationFailed(_REFUSED)
    return b"\0" + user + b"\0" + password
