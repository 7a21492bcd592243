"""Attempts of one address wait for each other, and failures for longer each time; other addresses don't notice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from archiver.errors import AuthenticationFailed
from archiver.serve.security import attempts
from archiver.serve.security.attempts import Attempts


async def fail(known: Attempts, address: str) -> None:
    with pytest.raises(AuthenticationFailed):
        async with known.one(address):
            raise AuthenticationFailed("the user or the password is wrong")


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(attempts.asyncio, "sleep", sleep)
    return found


def test_failures_are_told_later_each_time_until_the_address_was_quiet(waited: list[float]) -> None:
    async def play() -> None:
        now = [0.0]
        known = Attempts(lambda: now[0])
        for _ in range(6):
            await fail(known, "here")
        assert waited == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
        await fail(known, "there")
        assert waited[6:] == [0.1]
        now[0] = 61.0
        await fail(known, "here")
        async with known.one("here"):
            pass
        assert waited[7:] == [0.1], "who is right doesn't wait"

    asyncio.run(play())


def test_four_of_an_address_are_looked_at_at_a_time() -> None:
    async def play() -> None:
        known, gate, inside = Attempts(), asyncio.Event(), []

        async def attempt(address: str) -> None:
            async with known.one(address):
                inside.append(address)
                await gate.wait()

        tasks: list[asyncio.Task[Any]] = [asyncio.ensure_future(attempt("here")) for _ in range(20)]
        tasks.append(asyncio.ensure_future(attempt("there")))
        await asyncio.sleep(0.01)
        assert sorted(inside) == ["here"] * 4 + ["there"]
        gate.set()
        await asyncio.gather(*tasks)
        assert len(inside) == 21

    asyncio.run(play())


def test_not_all_addresses_are_remembered(waited: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        monkeypatch.setattr(attempts, "_MOST_ADDRESSES", 10)
        known = Attempts()
        for each in range(100):
            await fail(known, str(each))
        assert len(known._known) <= 11
        assert len(waited) == 100

    asyncio.run(play())
