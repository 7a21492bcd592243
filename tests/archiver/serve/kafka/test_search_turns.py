"""Turns for searches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from archiver.serve.kafka.search_turns import SearchTurns


class Searches:
    def __init__(self, at_once: int = 1) -> None:
        self.turns = SearchTurns(at_once)
        self.begun: list[str] = []
        self.gate = asyncio.Event()

    def begin(self, payer: str, name: str) -> asyncio.Task[str]:
        return asyncio.create_task(self.turns.run(payer, self._search(name)))

    async def _search(self, name: str) -> str:
        self.begun.append(name)
        await self.gate.wait()
        if name.startswith("broken"):
            raise ValueError(name)
        return name


def play(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), 10))


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_payers_take_turns() -> None:
    async def scene() -> None:
        searches = Searches()
        tasks = [searches.begin("flood", f"flood {number}") for number in range(5)]
        await settled()
        tasks += [searches.begin("alice", "alice 0"), searches.begin("alice", "alice 1")]
        await settled()
        searches.gate.set()
        assert await asyncio.gather(*tasks) == [*(f"flood {number}" for number in range(5)), "alice 0", "alice 1"]
        assert searches.begun[:5] == ["flood 0", "flood 1", "alice 0", "flood 2", "alice 1"]

    play(scene)


def test_no_more_searches_than_turns_run() -> None:
    async def scene() -> None:
        searches = Searches(at_once=3)
        tasks = [searches.begin("alice", str(number)) for number in range(9)]
        await settled()
        assert len(searches.begun) == 3
        searches.gate.set()
        await asyncio.gather(*tasks)
        assert len(searches.begun) == 9

    play(scene)


def test_a_search_of_a_gone_client_keeps_its_turn() -> None:
    async def scene() -> None:
        searches = Searches()
        gone, waiting, last = (searches.begin("alice", name) for name in ("gone", "waiting", "last"))
        await settled()
        gone.cancel()
        waiting.cancel()
        await settled()
        assert searches.begun == ["gone"]
        searches.gate.set()
        assert await last == "last"
        assert searches.begun == ["gone", "last"]

    play(scene)


def test_a_client_that_goes_when_its_turn_comes_hands_it_on() -> None:
    async def scene() -> None:
        searches = Searches()
        first = searches.begin("alice", "first")
        second = searches.begin("alice", "second")
        third = searches.begin("alice", "third")
        await settled()
        searches.gate.set()
        first.add_done_callback(lambda _: second.cancel())
        assert await third == "third"
        with pytest.raises(asyncio.CancelledError):
            await second

    play(scene)


def test_an_error_ends_the_turn() -> None:
    async def scene() -> None:
        searches = Searches()
        searches.gate.set()
        with pytest.raises(ValueError, match="broken"):
            await searches.begin("alice", "broken")
        assert await searches.begin("alice", "next") == "next"

    play(scene)
