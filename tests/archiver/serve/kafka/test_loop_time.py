"""Turns on the event loop."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest

from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.loop_time import LONG_AT_ONCE, LoopTime
from tests.support.timing.eventually import settle


class Work:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def busy(work: Work, turns: ClientTurns, done: Counter[str], name: str, seconds: float) -> None:
    while True:
        await turns.begin()
        work.now += seconds
        done[name] += 1


def played(*clients: tuple[str, str, float], turns_in_all: int, share: float = 1.0) -> Counter[str]:
    done: Counter[str] = Counter()

    async def play() -> None:
        work = Work()
        loop_time = LoopTime(share=share, clock=work)
        tasks = []
        for name, payer, seconds in clients:
            turns = ClientTurns(loop_time, payer)
            tasks.append(asyncio.ensure_future(turns.run(busy(work, turns, done, name, seconds))))
        while done.total() < turns_in_all:
            await settle(1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(play())
    return done


def test_long_work_waits_for_the_budget_of_its_payer() -> None:
    async def play() -> None:
        loop_time = LoopTime(share=100.0)
        greedy, modest = ClientTurns(loop_time, "greedy"), ClientTurns(loop_time, "modest")
        greedy.payer.level = -20.0
        late = asyncio.ensure_future(greedy.in_thread(lambda: "late"))
        await settle(1)
        assert await asyncio.wait_for(modest.in_thread(lambda: "now"), 1) == "now"
        assert not late.done()
        assert loop_time.over_budget == 1
        assert await asyncio.wait_for(late, 5) == "late"
        loop_time.close()

    asyncio.run(play())


def test_payers_share_equally_with_any_connections() -> None:
    many = [(f"many{number}", "many", 0.0001) for number in range(100)]
    done = played(*many, ("one", "one", 0.0001), turns_in_all=5000)
    assert done["one"] > 300, "one connection has a turn in each pass"


def test_connections_of_one_payer_have_equal_shares() -> None:
    done = played(*((f"c{number}", "payer", 0.0001) for number in range(20)), turns_in_all=2000)
    assert max(done.values()) - min(done.values()) <= 16, "until others come, one has a whole pass"


def test_who_has_used_less_goes_first() -> None:
    long = [(f"long{number}", "a", 0.001) for number in range(20)]
    short = [(f"short{number}", "b", 0.0001) for number in range(20)]
    done = played(*long, *short, turns_in_all=3000)
    ratio = sum(done[name] for name, *_ in short) / sum(done[name] for name, *_ in long)
    assert 6 < ratio < 14


def test_a_payer_over_its_budget_waits_and_others_do_not() -> None:
    async def play() -> None:
        work, done = Work(), Counter[str]()
        loop_time = LoopTime(share=0.25, clock=work)
        greedy = ClientTurns(loop_time, "greedy")
        task = asyncio.ensure_future(greedy.run(busy(work, greedy, done, "greedy", 0.1)))
        while not loop_time.over_budget:
            await settle(1)
        before = done["greedy"]
        assert 50 <= before <= 52, "five seconds are saved up"
        other_client = ClientTurns(loop_time, "other")
        await asyncio.wait_for(other_client.begin(), 0.1)
        assert done["greedy"] == before
        began = time.monotonic()
        while done["greedy"] == before:
            await settle(1)
        assert time.monotonic() - began < 1.0
        task.cancel()

    asyncio.run(play())


def test_requests_that_bring_records_are_not_in_the_budget() -> None:
    async def play() -> None:
        work = Work()
        loop_time = LoopTime(share=0.25, clock=work)
        turns = ClientTurns(loop_time, "reader")

        async def reads() -> None:
            for _ in range(200):
                await turns.begin()
                work.now += 0.1
                turns.suspended()
                turns.spare_budget()

        await asyncio.wait_for(turns.run(reads()), 5)
        assert loop_time.over_budget == 0
        assert round(loop_time.seconds) == 20

    asyncio.run(play())


def test_errors_and_cancellations_pass_through() -> None:
    async def play() -> None:
        turns = ClientTurns(LoopTime(), "a")

        async def fails() -> None:
            await settle(1)
            raise ValueError("told")

        async def waits() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "cancelled"
            return "over"

        with pytest.raises(ValueError, match="told"):
            await turns.run(fails())
        task = asyncio.ensure_future(turns.run(waits()))
        await settle()
        task.cancel()
        assert await task == "cancelled"

    asyncio.run(play())


def test_long_work_runs_singly_and_fails_at_its_waiter() -> None:
    async def play() -> None:
        loop_time = LoopTime()
        first, second = ClientTurns(loop_time, "a"), ClientTurns(loop_time, "b")

        def fails() -> None:
            raise ValueError("told")

        works: list[Coroutine[Any, Any, Any]] = [
            first.in_thread(lambda: 1),
            second.in_thread(fails),
            second.in_thread(lambda: 3),
        ]
        result, error, three = await asyncio.gather(*works, return_exceptions=True)
        assert (result, three) == (1, 3)
        assert isinstance(error, ValueError)
        loop_time.close()

    asyncio.run(play())


def test_payer_has_one_long_answer_assembled_at_a_time() -> None:
    async def play() -> None:
        work, order = Work(), list[str]()
        loop_time = LoopTime(clock=work)

        async def answers(name: str, payer: str) -> None:
            turns = ClientTurns(loop_time, payer)

            async def run() -> None:
                await turns.begin()
                async for _ in turns.each(range(200)):
                    work.now += 0.001
                order.append(name)
                turns.end_long_work()

            await turns.run(run())

        await asyncio.gather(answers("a1", "a"), answers("a2", "a"), answers("b", "b"))
        assert order.index("a1") < order.index("a2")
        assert order.index("b") < order.index("a2")

    asyncio.run(play())


def long_work_is_free(loop_time: LoopTime, payer: str) -> bool:
    return not loop_time.payer(payer).long_work.locked() and loop_time.long_work._value == LONG_AT_ONCE


@pytest.mark.parametrize("ends_while", ["before", "waiting for the payer", "waiting for a place"])
def test_work_that_outlives_its_connection_keeps_no_long_work(ends_while: str) -> None:
    async def play() -> None:
        work = Work()
        loop_time = LoopTime(clock=work)
        clients = [ClientTurns(loop_time, f"other{number}") for number in range(LONG_AT_ONCE)]
        first = ClientTurns(loop_time, "a")
        if ends_while == "waiting for the payer":
            await first.begin_long_work()
        elif ends_while == "waiting for a place":
            for holder in clients:
                await holder.begin_long_work()
        turns = ClientTurns(loop_time, "a")

        async def keeps() -> int:
            kept = 0
            async for _ in turns.each(range(100)):
                work.now += 0.001
                kept += 1
            return kept

        if ends_while == "before":
            turns.end()
        task = asyncio.ensure_future(keeps())
        await settle()
        assert task.done() is (ends_while == "before")
        turns.end()
        for client in (first, *clients):
            client.end_long_work()
        assert await asyncio.wait_for(task, 5) == 100
        assert long_work_is_free(loop_time, "a")

    asyncio.run(play())
