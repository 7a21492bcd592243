"""Reads go before opening files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from archiver.serve.reading.turns import WorkerTurns
from tests.support.timing.eventually import settle


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def played(most: int, course: Callable[[WorkerTurns, Clock, list[str]], list[tuple[str, float]]]) -> list[str]:
    done: list[str] = []

    async def play() -> None:
        clock = Clock()
        turns = WorkerTurns(most, clock)

        async def work(name: str, seconds: float) -> None:
            async with turns.turn(opens=name.startswith("open")):
                await settle(1)
                clock.now += seconds
                done.append(name)

        await asyncio.gather(*(work(*entry) for entry in course(turns, clock, done)))

    asyncio.run(play())
    return done


def test_opening_gets_its_share_while_others_wait() -> None:
    done = played(1, lambda *_: [(f"open {n}", 0.05) for n in range(20)] + [(f"on {n}", 0.005) for n in range(300)])
    seconds = {"open": 0.0, "on": 0.0}
    for name in done[: done.index("on 299")]:
        kind = name.split()[0]
        seconds[kind] += 0.05 if kind == "open" else 0.005
    assert 0.2 <= seconds["open"] / sum(seconds.values()) <= 0.3
    assert len(done) == 320


def test_those_who_ask_for_the_same_kind_go_in_order() -> None:
    done = played(1, lambda *_: [(f"{kind} {n}", 0.01) for n in range(30) for kind in ("open", "on")])
    for kind in ("open", "on"):
        assert [name for name in done if name.startswith(kind)] == [f"{kind} {n}" for n in range(30)]


@pytest.mark.parametrize(("most", "at_once"), [(1, 1), (2, 1), (4, 2), (5, 2)])
def test_half_of_the_workers_open_nothing_under_other_work(most: int, at_once: int) -> None:
    async def play() -> int:
        turns = WorkerTurns(most, Clock())
        over = asyncio.Event()
        running = 0

        async def opened() -> None:
            nonlocal running
            async with turns.turn(opens=True):
                running += 1
                await over.wait()

        async with turns.turn(opens=False):
            pass
        tasks = [asyncio.create_task(opened()) for _ in range(9)]
        await settle()
        count = running
        if most > 1:
            async with asyncio.timeout(5), turns.turn(opens=False):
                pass
        over.set()
        await asyncio.gather(*tasks)
        return count

    assert asyncio.run(play()) == at_once


def test_opening_has_all_workers_where_nothing_else_is_done() -> None:
    async def play() -> None:
        turns = WorkerTurns(4, Clock())
        together = asyncio.Barrier(4)

        async def opened() -> None:
            async with turns.turn(opens=True):
                await together.wait()

        async with asyncio.timeout(5):
            await asyncio.gather(*(opened() for _ in range(8)))

    asyncio.run(play())


def test_who_gives_up_leaves_the_turn_to_others() -> None:
    async def play() -> None:
        turns = WorkerTurns(1)
        over = asyncio.Event()

        async def work(*, opens: bool) -> None:
            async with turns.turn(opens=opens):
                await over.wait()

        for opens in (True, False):
            over.clear()
            tasks = [asyncio.create_task(work(opens=opens)) for _ in range(4)]
            await settle(1)
            tasks[0].cancel()  # has a turn
            tasks[1].cancel()  # gets it in the same moment
            tasks[2].cancel()
            over.set()
            async with asyncio.timeout(5):
                await tasks[3]
            assert all(task.cancelled() for task in tasks[:3])

    asyncio.run(play())


def test_a_failure_ends_the_turn() -> None:
    async def play() -> None:
        turns = WorkerTurns(1)
        for _ in range(3):
            with pytest.raises(ValueError, match="wrong"):
                async with turns.turn(opens=False):
                    raise ValueError("wrong")

    asyncio.run(play())
