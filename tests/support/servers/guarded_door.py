"""A door with users and tokens in memory, and its client."""

from __future__ import annotations

import ssl
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiokafka.conn import ScramAuthenticator
from kio.schema.errors import ErrorCode

from archiver.access.passwords import LEAST_ITERATIONS, MECHANISMS, keys_of_password
from archiver.access.rules import Access, Rule
from archiver.access.users import KnownUsers, Users
from archiver.serve.security.exchanges import MECHANISM_WORDS, Mechanisms, MechanismWord
from archiver.serve.security.session import Session
from archiver.serve.security.token_keys import TokenKeys, parsed
from archiver.serve.security.tokens import TokenRules, Tokens
from tests.support.servers.served_lake import Wire, request
from tests.support.servers.tokens import AUDIENCE, ISSUER, TokenIssuer

SECRET = b"secret of these tests"


def known_users(passwords: Mapping[str, str]) -> KnownUsers:
    keys = {
        name: {value: keys_of_password(value, password, LEAST_ITERATIONS) for value in MECHANISMS}
        for name, password in passwords.items()
    }
    return KnownUsers.with_keys(keys, SECRET)


class GuardedDoor:
    context: ssl.SSLContext | None = None

    def __init__(
        self,
        mechanisms: Iterable[MechanismWord] = MECHANISM_WORDS,
        *,
        rules: Iterable[Rule] = (),
        most_seconds: float = 0.0,
        clock_skew: float = 0.0,
    ) -> None:
        self.issuer = TokenIssuer()
        self.jwks = self.issuer.jwks()
        self._rules, self._most_seconds = tuple(rules), most_seconds
        result = known_users({"alice": "alice", "bob": "bob"})

        async def users() -> KnownUsers:
            return result

        async def keys() -> Any:
            return parsed(self.jwks.encode())

        token_rules = TokenRules(issuer=ISSUER, audiences=(AUDIENCE,), clock_skew=clock_skew)
        self._users, self._tokens = Users(users), Tokens(token_rules, TokenKeys(keys, least_seconds=0.0))
        self._mechanisms = Mechanisms(
            enabled=tuple(mechanisms), users=self._users, tokens=self._tokens, hashing=ThreadPoolExecutor(1)
        )

    def session(self, _certificate: bytes | None) -> Session:
        return Session(
            mechanisms=self._mechanisms,
            access_of=lambda user: Access(user, self._rules),
            principal=None,
            most_seconds=self._most_seconds,
        )


def shake(wire: Wire, mechanism: str, *, version: int = 1) -> ErrorCode:
    error: ErrorCode = wire.ask(request(17, version, mechanism=mechanism)).error_code
    return error


def send(wire: Wire, message: bytes) -> Any:
    return wire.ask(request(36, 2, auth_bytes=message))


def come_in(wire: Wire, name: str = "alice", password: str | None = None) -> None:
    assert shake(wire, "PLAIN") == ErrorCode.none
    assert send(wire, f"\0{name}\0{password or name}".encode()).error_code == ErrorCode.none


def scram(name: str, password: str, mechanism: str = "SCRAM-SHA-256") -> Generator[Any, bytes, None]:
    client = ScramAuthenticator(
        loop=None, sasl_plain_password=password, sasl_plain_username=name, sasl_mechanism=mechanism
    )
    exchange: Generator[Any, bytes, None] = client.authenticator_scram()
    return exchange


def bearer(token: str, *, authzid: str = "") -> bytes:
    named = f"a={authzid}" if authzid else ""
    return f"n,{named},\x01auth=Bearer {token}\x01\x01".encode()
