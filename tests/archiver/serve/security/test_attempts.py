"""Failed logins are delayed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from archiver.errors import AuthenticationFailed
from archiver.serve.security.attempts import Attempts
from tests.support.timing.eventually import settle


async def fail(known: Attempts, address: str, user: str | None = "user") -> None:
    with pytest.raises(AuthenticationFailed):
        async with known.one(address, user):
            raise AuthenticationFailed("the user or the password is wrong")


class Waits:
    def __init__(self, *, is_open: bool = True) -> None:
        self.seconds: list[float] = []
        self.gate = asyncio.Event()
        if is_open:
            self.gate.set()

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await self.gate.wait()


def test_failures_are_delayed_more_until_the_user_is_quiet() -> None:
    async def play() -> None:
        now, waits = [0.0], Waits()
        tries = Attempts(lambda: now[0], wait=waits)
        for _ in range(6):
            await fail(tries, "here")
        assert waits.seconds == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
        await fail(tries, "there")
        await fail(tries, "here", "another")
        assert waits.seconds[6:] == [0.1, 0.1]
        now[0] = 61.0
        await fail(tries, "here")
        async with tries.one("here", "user"):
            pass
        assert waits.seconds[8:] == [0.1], "who is right doesn't wait"

    asyncio.run(play())


def test_four_of_an_address_are_looked_at_at_a_time() -> None:
    async def play() -> None:
        tries, gate, inside = Attempts(), asyncio.Event(), []

        async def attempt(address: str) -> None:
            async with tries.one(address, "user"):
                inside.append(address)
                await gate.wait()

        tasks: list[asyncio.Task[Any]] = [asyncio.ensure_future(attempt("here")) for _ in range(20)]
        tasks.append(asyncio.ensure_future(attempt("there")))
        await settle(5)
        assert sorted(inside) == ["here"] * 4 + ["there"]
        gate.set()
        await asyncio.gather(*tasks)
        assert len(inside) == 21

    asyncio.run(play())


@pytest.mark.parametrize("user", ["user", "another", None])
def test_sixty_clients_with_an_old_password_keep_no_other_out(user: str | None) -> None:
    async def play() -> None:
        waits = Waits(is_open=False)
        tries = Attempts(wait=waits)
        failing = [asyncio.ensure_future(fail(tries, "here")) for _ in range(60)]
        await settle(100)
        assert len(waits.seconds) == 60
        async with tries.one("here", user):
            pass
        waits.gate.set()
        await asyncio.gather(*failing)

    asyncio.run(play())


@pytest.mark.parametrize(("user", "looked_at"), [("user", 64), (None, 100)])
def test_passwords_of_a_user_are_guessed_at_most_64_at_a_time(user: str | None, looked_at: int) -> None:
    async def play() -> None:
        waits = Waits(is_open=False)
        tries = Attempts(wait=waits)
        failing = [asyncio.ensure_future(fail(tries, "here", user)) for _ in range(100)]
        await settle(200)
        assert len(waits.seconds) == looked_at
        async with tries.one("here", "another"):
            pass
        waits.gate.set()
        await asyncio.gather(*failing)

    asyncio.run(play())


def test_not_all_users_are_remembered() -> None:
    async def play() -> None:
        waits = Waits()
        tries = Attempts(wait=waits, most_users=10)
        for number in range(100):
            await fail(tries, "here", str(number))
        assert len(tries._users) <= 11
        assert len(waits.seconds) == 100
        for number in range(100):
            async with tries.one("there", str(number)):
                pass
        assert len(tries._users) <= 11
        assert not tries._addresses

    asyncio.run(play())
