"""Users while the registry is away."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any, cast

import pytest

from archiver.access.accounts import ANSWERS_WITHIN, RegistryUsers
from archiver.access.users import KnownUsers, Users
from catalog.errors import RegistryUnreachable
from catalog.registry import EveryUser, ScramKeys
from tests.support.servers.guarded_door import known_users

FIRST, LATER = known_users({"alice": "alice"}), known_users({"alice": "alice", "bob": "bob"})


class Store:
    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.error: Exception | None = None

    async def load(self) -> KnownUsers:
        self.asked += 1
        if self.asked == 1:
            return FIRST
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return LATER


def test_a_registry_that_says_nothing_keeps_nobody_out() -> None:
    async def run() -> None:
        store = Store()
        users = Users(store.load, seconds=0.0)
        await users.begin()
        began = time.monotonic()
        assert await asyncio.gather(*(users.known() for _ in range(50))) == [FIRST] * 50
        assert time.monotonic() - began < 5.0
        assert store.asked == 2, "who asks at once shares an answer"
        store.may_answer.set()
        assert await users.known() is LATER, "its answer counts when it comes"
        await users.close()

    asyncio.run(asyncio.wait_for(run(), 20))


@pytest.mark.parametrize("error", [RegistryUnreachable("away"), ConnectionResetError("broken")])
def test_a_registry_that_fails_keeps_nobody_out(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        store = Store()
        store.may_answer.set()
        store.error = error
        users = Users(store.load, seconds=0.0)
        await users.begin()
        assert [await users.known() for _ in range(3)] == [FIRST] * 3
        store.error = None
        assert await users.known() is LATER

    asyncio.run(run())
    assert caplog.text.count("users can't be looked up") == 1, "said once"


def test_silent_registry_counts_as_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        users = RegistryUsers(f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/x?sslmode=disable")
        began = time.monotonic()
        with pytest.raises(RegistryUnreachable):
            users.load()
        assert time.monotonic() - began < 2 * ANSWERS_WITHIN


@pytest.mark.parametrize("iterations", [4095, 250_001, 2**31 - 1])
def test_keys_with_unsafe_iterations_admit_no_user(
    iterations: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def keys(count: int) -> ScramKeys:
        return ScramKeys(
            mechanism="SCRAM-SHA-256", salt=b"s", iterations=count, stored_key=b"x" * 32, server_key=b"y" * 32
        )

    class Opened:
        def __init__(self, *_: object, **__: object) -> None:
            self.users = self

        def every(self) -> EveryUser:
            return EveryUser(keys={"odd": (keys(iterations),), "good": (keys(4096),)}, secret=b"z")

    users = RegistryUsers("postgresql://u@h/x", connect=cast("Any", Opened))
    for _ in range(2):
        existing = users.load()
        nobody, is_known = existing.any_keys_of("odd")
        assert not is_known
        assert nobody.iterations == 16_384, "what who isn't known is hashed with"
        assert existing.any_keys_of("good")[1]
    assert caplog.text.count("users can't come in") == 1
    assert "odd" in caplog.text
