"""A reader's pace beside hostile addresses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.loop_budgets import BURST_BESIDE_READERS, BURST_SECONDS, COMMON, FLOOD_GROWTH, GROWTH
from archiver.serve.kafka.loop_time import LoopTime
from tests.support.timing.virtual_loop import ManualClock, passes, run_in_virtual_time

SECONDS = 60.0
FETCH_SECONDS = 0.005
LEAST_SHARE = 0.8


class Scene:
    def __init__(self, share: float = 0.25) -> None:
        self.clock = ManualClock()
        self.loop_time = LoopTime(share=share, clock=self.clock)
        self.turns: Counter[str] = Counter()

    async def read(self, name: str, *, payer: str = "", thinks: float = FETCH_SECONDS) -> None:
        turns = ClientTurns(self.loop_time, payer or name)

        async def fetch_again_and_again() -> None:
            while True:
                await turns.begin()
                self.clock.now += FETCH_SECONDS
                turns.suspended()
                turns.spare_budget()
                self.turns[name] += 1
                await passes(thinks)

        await turns.run(fetch_again_and_again())

    async def flood(self, name: str, *, payer: str = "", seconds: float = 0.001, thinks: float = 0.0) -> None:
        turns = ClientTurns(self.loop_time, payer or name)

        async def send_again_and_again() -> None:
            while True:
                await turns.begin()
                self.clock.now += seconds
                self.turns[name] += 1
                if thinks:
                    await passes(thinks)

        await turns.run(send_again_and_again())

    def play(self, *clients: Callable[[], Awaitable[None]], seconds: float = SECONDS) -> Counter[str]:
        async def play() -> Counter[str]:
            tasks = [asyncio.ensure_future(client()) for client in clients]
            await passes(seconds)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return self.turns

        return run_in_virtual_time(play(), self.clock)


def flooding(scene: Scene, addresses: int, connections: int, **options: float) -> list[Callable[[], Awaitable[None]]]:
    names = [f"hostile-{number}" for number in range(addresses) for _ in range(connections)]
    return [lambda name=name: scene.flood(name, **options) for name in names]  # type: ignore[misc]


@pytest.fixture(scope="module")
def alone() -> int:
    scene = Scene()
    return scene.play(lambda: scene.read("reader"))["reader"]


@pytest.mark.parametrize(("addresses", "connections"), [(1, 1), (1, 50), (10, 5)])
@pytest.mark.parametrize("seconds", [0.0005, 0.005])
def test_a_reader_keeps_its_pace_beside_hostile_addresses(
    alone: int, addresses: int, connections: int, seconds: float
) -> None:
    scene = Scene()
    turns = scene.play(lambda: scene.read("reader"), *flooding(scene, addresses, connections, seconds=seconds))
    assert turns["reader"] >= LEAST_SHARE * alone
    assert len(turns) == 1 + addresses
    assert min(turns.values()) > 0


def test_hostile_addresses_use_idle_time_while_nothing_is_read() -> None:
    scene = Scene()
    scene.play(*flooding(scene, 1, 5), seconds=40.0)
    assert scene.loop_time.seconds == pytest.approx(BURST_SECONDS + 40.0 * 0.25, rel=0.1)


def test_a_quiet_client_of_a_hostile_address_is_served() -> None:
    scene = Scene()
    turns = scene.play(
        lambda: scene.read("reader"),
        lambda: scene.read("neighbour", payer="hostile-0", thinks=1.0),
        *flooding(scene, 1, 20),
    )
    assert turns["neighbour"] > SECONDS / 3


def test_addresses_within_budgets_leave_a_reader_its_pace(alone: int) -> None:
    scene = Scene()
    turns = scene.play(
        lambda: scene.read("reader"),
        *(lambda name=f"sly-{number}": scene.flood(name, thinks=0.01) for number in range(20)),  # type: ignore[misc]
    )
    assert turns["reader"] >= LEAST_SHARE * alone


def test_a_readers_other_requests_do_not_hold_up_its_fetches(alone: int) -> None:
    scene = Scene()
    turns = scene.play(
        lambda: scene.read("other", thinks=0.5),
        lambda: scene.read("reader"),
        lambda: scene.flood("heartbeats", payer="reader", seconds=0.001, thinks=0.02),
    )
    assert turns["reader"] >= LEAST_SHARE * alone
    assert turns["heartbeats"] > SECONDS * 20


@pytest.mark.parametrize("level", [5.0, -0.5])
def test_a_client_of_another_address_waits_half_a_second_at_most(level: float) -> None:
    scene = Scene()
    waits = []

    async def look() -> None:
        turns = ClientTurns(scene.loop_time, "quiet")
        turns.payer.level = level

        async def look_again_and_again() -> None:
            await passes(1.0)
            while True:
                began = scene.clock.now
                await turns.begin()
                waits.append(scene.clock.now - began)
                scene.clock.now += 0.0005
                await passes(0.1)

        await turns.run(look_again_and_again())

    scene.play(lambda: scene.read("reader"), look, *flooding(scene, 10, 5, seconds=0.005))
    assert max(waits) < 0.5
    assert len(waits) > 2 * SECONDS


def test_an_address_has_its_own_budget_again_once_it_is_quiet() -> None:
    scene = Scene()

    async def floods_for_a_while() -> None:
        flood = asyncio.ensure_future(scene.flood("noisy"))
        await passes(20.0)
        flood.cancel()

    scene.play(lambda: scene.read("reader"), floods_for_a_while, seconds=40.0)

    async def level() -> float:
        scene.loop_time.budgets.delay(payer := scene.loop_time.payer("noisy"))
        return payer.level

    assert run_in_virtual_time(level(), scene.clock) == pytest.approx(BURST_BESIDE_READERS)


def test_a_fetch_pays_for_partitions_without_records() -> None:
    scene = Scene()

    async def fetch() -> float:
        turns = ClientTurns(scene.loop_time, "reader")
        for part in (1.0, 0.25):
            await turns.begin()
            scene.clock.now += 0.1
            turns.suspended()
            turns.spare_budget(part)
        return turns.payer.level

    assert run_in_virtual_time(fetch(), scene.clock) == pytest.approx(BURST_SECONDS - 0.1 + 0.25 * 0.1 * 1.25, abs=1e-3)


def test_a_payer_in_debt_that_waits_beside_readers_gets_budget() -> None:
    scene = Scene()

    async def level() -> float:
        budgets = scene.loop_time.budgets
        reader, waiting = scene.loop_time.payer("reader"), scene.loop_time.payer("waiting")
        waiting.level = -1.0
        turns = ClientTurns(scene.loop_time, "waiting")
        waiting.waiting.append((False, 0.0, 0, asyncio.get_running_loop().create_future(), turns))
        for _ in range(10):
            budgets.spare(reader, FETCH_SECONDS)
            budgets.delay(waiting)
            await passes(1.0)
        budgets.delay(waiting)
        return waiting.level

    assert run_in_virtual_time(level(), scene.clock) == pytest.approx(-1.0 + 10 * 0.25 * (GROWTH - COMMON), abs=0.01)


def test_a_client_with_slow_requests_does_not_wait_for_floods() -> None:
    """On a busy machine, a request of half a millisecond takes many."""
    scene = Scene()
    waits = []

    async def look() -> None:
        turns = ClientTurns(scene.loop_time, "quiet")

        async def look_again_and_again() -> None:
            for number in count():
                began = scene.clock.now
                await turns.begin()
                waits.append(scene.clock.now - began)
                scene.clock.now += 0.05 if number % 8 == 0 else 0.006
                await passes(0.1)

        await turns.run(look_again_and_again())

    scene.play(lambda: scene.read("reader"), look, *flooding(scene, 1, 50))
    assert max(waits) < 0.05
    assert len(waits) > 8 * SECONDS


def test_floods_share_less_growth_than_other_clients(alone: int) -> None:
    scene = Scene()
    turns = scene.play(lambda: scene.read("reader"), *flooding(scene, 1, 50))
    assert turns["reader"] >= 0.9 * alone
    assert scene.loop_time.seconds - turns["reader"] * FETCH_SECONDS < SECONDS * 0.25 * (FLOOD_GROWTH + COMMON)


def test_strangers_without_requests_do_not_divide_the_growth() -> None:
    scene = Scene()

    async def connect() -> None:
        for number in range(10_000):
            scene.loop_time.charge_payer(scene.loop_time.payer(f"stranger-{number % 100}"), 0.0001)
            await passes(0.005)

    async def level() -> float:
        reader = asyncio.ensure_future(scene.read("reader"))
        strangers = asyncio.ensure_future(connect())
        await passes(10.0)
        client = scene.loop_time.payer("client")
        client.level = -1.0
        for _ in range(51):
            scene.loop_time.budgets.delay(client)
            await passes(0.1)
        for task in (reader, strangers):
            task.cancel()
        return client.level

    assert run_in_virtual_time(level(), scene.clock) > -1.0 + 0.7 * 5 * 0.25 * GROWTH
