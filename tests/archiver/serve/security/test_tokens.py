"""Tokens: issuer, audience, time, keys."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

from archiver.errors import AuthenticationFailed, ServeError
from archiver.serve.security.token_keys import TokenKeys, keys_at, parsed
from archiver.serve.security.tokens import Bearer, TokenRules, Tokens
from tests.support.servers.guarded_door import bearer
from tests.support.servers.tokens import AUDIENCE, ISSUER, TokenIssuer

ISSUER_OF_ALL = TokenIssuer()


class Provider:
    def __init__(self, issuer: TokenIssuer) -> None:
        self.issuer = issuer
        self.asked = 0
        self.error: Exception | None = None

    async def load(self) -> Any:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return parsed(self.issuer.jwks().encode())


def verified(token: str, provider: Provider | None = None, *, authzid: str = "", **rules: Any) -> Any:
    async def ask() -> Any:
        keys = TokenKeys((provider or Provider(ISSUER_OF_ALL)).load)
        await keys.begin()
        asked = {"issuer": ISSUER, "audiences": (AUDIENCE,), "clock_skew": 0.0} | rules
        return await Tokens(TokenRules(**asked), keys).verified(Bearer.parse(bearer(token, authzid=authzid)))

    return asyncio.run(ask())


def test_a_good_token_says_who_and_until_when() -> None:
    identity = verified(ISSUER_OF_ALL.token("alice", 60.0), authzid="alice")
    assert identity.name == "alice"
    assert 55.0 < identity.expires - time.time() <= 60.0
    assert verified(ISSUER_OF_ALL.token(azp="client-7"), principal_claim="azp").name == "client-7"
    assert verified(ISSUER_OF_ALL.token(aud=["others", AUDIENCE])).name == "reader"


SHARED = b"a secret that both sides would share"


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (lambda: ISSUER_OF_ALL.token(life_seconds=-1.0), "expired"),
        (lambda: ISSUER_OF_ALL.token(nbf=time.time() + 60.0), "not yet valid"),
        (lambda: ISSUER_OF_ALL.token(exp=None), '"exp"'),
        (lambda: ISSUER_OF_ALL.token(aud="others"), "[Aa]udience"),
        (lambda: ISSUER_OF_ALL.token(aud=None), '"aud"'),
        (lambda: ISSUER_OF_ALL.token(iss="https://elsewhere"), "issuer"),
        (lambda: ISSUER_OF_ALL.token(iss=None), '"iss"'),
        (lambda: ISSUER_OF_ALL.token(sub=None), "no claim 'sub'"),
        (lambda: ISSUER_OF_ALL.token(""), "no claim 'sub'"),
        (lambda: ISSUER_OF_ALL.token(algorithm="none", key=""), "'none'"),
        (lambda: ISSUER_OF_ALL.token(algorithm="HS256", key=SHARED), "'HS256'"),
        (lambda: TokenIssuer().token(), "signature is wrong"),
        (lambda: TokenIssuer("another").token(), "issuer doesn't have"),
        (lambda: ISSUER_OF_ALL.token()[:-8] + "AAAAAAAA", "signature is wrong"),
        (lambda: "a.b.c", "can't be read"),
        (lambda: "e30", "can't be read"),
    ],
)
def test_a_bad_token_is_refused(token: Any, why: str) -> None:
    with pytest.raises(AuthenticationFailed, match=why):
        verified(token())


def test_a_little_lateness_is_forgiven() -> None:
    assert verified(ISSUER_OF_ALL.token(life_seconds=-5.0), clock_skew=30.0).name == "reader"


def test_a_token_for_another_name_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="for itself only"):
        verified(ISSUER_OF_ALL.token("alice"), authzid="bob")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic YTpi\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"\x01",
        b"n,,\x01auth=Bearer a",
    ],
)
def test_what_has_no_token_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        Bearer.parse(message)


def test_extensions_of_a_client_do_no_harm() -> None:
    assert Bearer.parse(b"n,a=x=2Cy,\x01auth=Bearer t0ken\x01traceId=123\x01\x01") == Bearer("t0ken", "x,y")


def test_new_keys_are_fetched_once_a_token_has_one() -> None:
    provider = Provider(TokenIssuer("new"))
    unknown = Bearer.parse(bearer(TokenIssuer("unknown").token()))

    async def run() -> None:
        keys = TokenKeys(provider.load, least_seconds=60.0)
        tokens = Tokens(TokenRules(issuer=ISSUER, audiences=(AUDIENCE,)), keys)
        both = [tokens.verified(Bearer.parse(bearer(provider.issuer.token()))) for _ in range(5)]
        assert {identity.name for identity in await asyncio.gather(*both)} == {"reader"}
        assert provider.asked == 1, "who asks at once shares an answer"
        for _ in range(20):
            with pytest.raises(AuthenticationFailed):
                await tokens.verified(unknown)
        assert provider.asked == 1, "unknown keys don't make the server ask on and on"

    asyncio.run(run())


def test_while_keys_are_away_the_last_ones_count() -> None:
    provider = Provider(ISSUER_OF_ALL)

    async def run() -> None:
        keys = TokenKeys(provider.load, kept_seconds=0.0, least_seconds=0.0)
        await keys.begin()
        provider.error = ServeError("away")
        assert len(await keys.fitting("one", "RS256")) == 1

    asyncio.run(run())


@pytest.mark.parametrize("error", [ServeError("away"), ValueError("nobody expects this")])
def test_keys_that_can_not_be_loaded_are_not_asked_for_on_and_on(error: Exception) -> None:
    provider = Provider(ISSUER_OF_ALL)

    async def run() -> None:
        keys = TokenKeys(provider.load, least_seconds=60.0)
        provider.error = error
        for _ in range(5):
            with pytest.raises(AuthenticationFailed, match="issuer doesn't have"):
                await keys.fitting("one", "RS256")
        assert provider.asked == 1

    asyncio.run(run())


def test_an_address_that_says_nothing_keeps_no_known_key_out() -> None:
    async def run() -> None:
        provider = Provider(ISSUER_OF_ALL)
        keys = TokenKeys(provider.load, kept_seconds=0.0)
        await keys.begin()
        keys._load = asyncio.Event().wait  # type: ignore[assignment]
        assert len(await keys.fitting("one", "RS256")) == 1
        await keys.close()

    asyncio.run(asyncio.wait_for(run(), 5))


LENGTH = b"Content-Length: 1000\r\n"


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (LENGTH, b'{"keys": ['),
        (LENGTH + b"Content-Encoding: gzip\r\n", b"x" * 1000),
        (b"Transfer-Encoding: chunked\r\n", b"zz\r\n"),
        (b"", b"[" * (2 << 20)),
    ],
    ids=["cut off", "not gzip", "no chunks", "without end"],
)
def test_a_broken_answer_says_which_address(head: bytes, body: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + head + b"\r\n" + body)

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/keys"
        with pytest.raises(ServeError) as caught:
            keys_at(url, None)
        thread.join()
    assert caught.value.context["url"] == url


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b"[]", b'{"keys": []}', b'{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "one"}]}', b"[" * 100_000],
)
def test_what_holds_no_public_keys_is_refused(text: bytes) -> None:
    with pytest.raises(ServeError):
        parsed(text)
