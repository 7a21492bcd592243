"""SASL mechanisms as exchanges of messages, without frames."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias, get_args

from archiver.access.passwords import Mechanism, is_password
from archiver.access.users import Users
from archiver.errors import AuthenticationFailed
from archiver.serve.security.scram import ScramExchange
from archiver.serve.security.tokens import Bearer, Tokens, VerifiedToken

MechanismWord: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
MECHANISM_WORDS: Final[tuple[MechanismWord, ...]] = get_args(MechanismWord)
_PLAIN_FIELDS: Final = 3


@dataclass(frozen=True, slots=True)
class ExchangeStep:
    """At the end, `name` is the user."""

    answer: bytes
    name: str | None = None
    verified: VerifiedToken | None = None


class Exchange(Protocol):
    async def step(self, message: bytes) -> ExchangeStep:
        """Raises AuthenticationFailed if the credentials are wrong."""

    def user_in(self, message: bytes) -> str | None:
        """Return the claimed name if the message has a password or a proof."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanisms:
    """A server's mechanisms. `hashing` runs slow hashes."""

    enabled: Sequence[MechanismWord]
    users: Users | None
    tokens: Tokens | None
    hashing: Executor

    def begin(self, mechanism: str) -> Exchange | None:
        """None if the mechanism isn't enabled."""
        if mechanism not in self.enabled:
            return None
        match mechanism:
            case "OAUTHBEARER":
                assert self.tokens is not None
                return _Bearer(self.tokens)
            case "PLAIN":
                assert self.users is not None
                return _Plain(self.users, self.hashing)
            case "SCRAM-SHA-256" | "SCRAM-SHA-512":
                assert self.users is not None
                return _Scram(mechanism, self.users)
            case _:
                return None


class _Plain:
    def __init__(self, users: Users, hashing: Executor) -> None:
        self._users = users
        self._hashing = hashing

    def user_in(self, message: bytes) -> str:
        fields = message.split(b"\0")
        return fields[1].decode(errors="replace") if len(fields) == _PLAIN_FIELDS else ""

    async def step(self, message: bytes) -> ExchangeStep:
        try:
            fields = message.decode().split("\0")
        except UnicodeDecodeError:
            fields = []
        if len(fields) != _PLAIN_FIELDS or not fields[1] or not fields[2]:
            raise AuthenticationFailed("the message isn't that of PLAIN")
        authzid, name, password = fields
        if authzid not in ("", name):
            raise AuthenticationFailed("a client may authenticate for itself only")
        keys, is_known = (await self._users.known()).any_keys_of(name)
        is_right = await asyncio.get_running_loop().run_in_executor(self._hashing, is_password, keys, password)
        if not (is_right and is_known):
            raise AuthenticationFailed("the user or the password is wrong")
        return ExchangeStep(b"", name)


class _Scram:
    def __init__(self, mechanism: Mechanism, users: Users) -> None:
        self._mechanism = mechanism
        self._users = users
        self._exchange: ScramExchange | None = None

    def user_in(self, _message: bytes) -> str | None:
        return None if self._exchange is None else self._exchange.name  # the first message proves nothing yet

    async def step(self, message: bytes) -> ExchangeStep:
        if self._exchange is not None:
            return ExchangeStep(self._exchange.verdict(message), self._exchange.name)
        users = await self._users.known()
        self._exchange = ScramExchange(self._mechanism, lambda name: users.keys_of(name, self._mechanism))
        return ExchangeStep(self._exchange.challenge(message))


class _Bearer:
    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._failure: AuthenticationFailed | None = None

    def user_in(self, _message: bytes) -> None:
        return None

    async def step(self, message: bytes) -> ExchangeStep:
        if self._failure is not None:  # the client has seen why, and says so
            raise self._failure
        try:
            verified = await self._tokens.verified(Bearer.parse(message))
        except AuthenticationFailed as error:
            self._failure = error
            return ExchangeStep(b'{"status":"invalid_token"}')
        return ExchangeStep(b"", verified.name, verified)
