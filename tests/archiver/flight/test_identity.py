"""Tokens of handshakes, and bounded attempts."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from archiver.access.rules import Access, Principal
from archiver.errors import AuthenticationFailed, IntakeFull
from archiver.flight.identity import MOST_ATTEMPTS, CallIdentity, Identities
from archiver.serve.security import Granted, Shaken
from tests.support.timing.eventually import settle
from tests.support.timing.virtual_loop import ManualClock

ACCESS = Access(Principal("alice"), ())
BASIC = {"authorization": "Basic " + base64.b64encode(b"alice:secret").decode()}


class _Session:
    has_expired = False
    ends_at = 100.0

    def __init__(self, go: asyncio.Event) -> None:
        self._go = go
        self.access: Access | None = None

    def handshake(self, mechanism: str, *, is_raw: bool) -> Shaken:
        return Shaken.BEGUN if mechanism == "PLAIN" else Shaken.UNKNOWN_MECHANISM

    def user_in(self, _message: bytes) -> str | None:
        return None

    async def authenticate(self, _message: bytes) -> Granted:
        await self._go.wait()
        self.access = ACCESS
        return Granted(b"", is_done=True)


class _Gate:
    def __init__(self) -> None:
        self.go = asyncio.Event()

    def session(self, _certificate: bytes | None) -> _Session:
        return _Session(self.go)


def identities(gate: _Gate, clock: ManualClock, *, seconds: float = 3600.0) -> Identities:
    security: Any = gate
    return Identities(security, seconds=seconds, clock=clock)


def test_a_token_of_a_token_ends_with_it() -> None:
    async def run() -> None:
        clock = ManualClock()
        made = identities(_Gate(), clock)
        token = made.token(CallIdentity(ACCESS, lambda: False))
        clock.now = 3500.0
        identity = await made.identify({"authorization": f"Bearer {token}"}, (), "")
        again = made.token(identity)
        clock.now = 3599.0
        assert (await made.identify({"authorization": f"Bearer {again}"}, (), "")).access is ACCESS
        clock.now = 3601.0
        assert identity.has_expired()
        with pytest.raises(AuthenticationFailed):
            await made.identify({"authorization": f"Bearer {again}"}, (), "")

    asyncio.run(run())


def test_a_token_ends_with_the_credentials_that_it_was_made_from() -> None:
    async def run() -> None:
        gate, clock = _Gate(), ManualClock()
        gate.go.set()
        made = identities(gate, clock)
        token = made.token(await made.identify(BASIC, (), ""))
        bearer = {"authorization": f"Bearer {token}"}
        clock.now = 99.0
        assert (await made.identify(bearer, (), "")).access is ACCESS
        clock.now = 101.0
        with pytest.raises(AuthenticationFailed):
            await made.identify(bearer, (), "")

    asyncio.run(run())


def test_attempts_of_an_address_are_bounded() -> None:
    async def run() -> None:
        gate = _Gate()
        made = identities(gate, ManualClock())
        waiting = [asyncio.create_task(made.identify(BASIC, (), "192.0.2.1")) for _ in range(MOST_ATTEMPTS)]
        await settle()
        with pytest.raises(IntakeFull, match="many credentials of this address are being checked") as caught:
            await asyncio.wait_for(made.identify(BASIC, (), "192.0.2.1"), 5)
        assert caught.value.context["retry_seconds"] == 1.0
        task = asyncio.create_task(made.identify(BASIC, (), "192.0.2.2"))
        gate.go.set()
        assert {identity.access for identity in await asyncio.gather(task, *waiting)} == {ACCESS}
        assert (await made.identify(BASIC, (), "192.0.2.1")).access is ACCESS

    asyncio.run(run())


def test_an_identity_without_credentials_is_refused() -> None:
    async def run() -> None:
        with pytest.raises(AuthenticationFailed):
            await identities(_Gate(), ManualClock()).identify({}, (), "")

    asyncio.run(run())
