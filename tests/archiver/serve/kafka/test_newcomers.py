"""Waiting newcomers use no memory."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator

import pytest

from archiver.serve.kafka import newcomers
from archiver.serve.kafka.loop_time import LoopTime
from archiver.serve.kafka.newcomers import Newcomer, Newcomers
from tests.support.timing.virtual_loop import ManualClock, passes, run_in_virtual_time

SECONDS = 5.0
HOSTILE = "192.0.2.1"


@pytest.fixture
def clients() -> Iterator[list[tuple[Newcomer, socket.socket]]]:
    made = []
    for port in range(40):
        ours, theirs = socket.socketpair()
        ours.setblocking(False)  # noqa: FBT003 - its only way
        made.append((Newcomer(ours, HOSTILE, port, HOSTILE), theirs))
    yield made
    for newcomer, theirs in made:
        newcomer.client.close()
        theirs.close()


def parked(
    play: Callable[[Newcomers, LoopTime], Awaitable[None]],
) -> list[int]:
    clock, taken = ManualClock(), list[int]()

    async def run() -> None:
        loop_time = LoopTime(clock=clock)
        waiting = Newcomers(loop_time, lambda newcomer: taken.append(newcomer.port), seconds=SECONDS)
        await play(waiting, loop_time)
        waiting.close()

    run_in_virtual_time(run(), clock)
    return taken


def test_clients_wait_for_the_budget_of_their_address(clients: list[tuple[Newcomer, socket.socket]]) -> None:
    async def play(waiting: Newcomers, loop_time: LoopTime) -> None:
        loop_time.payer(HOSTILE).level = -0.5
        for newcomer, _ in clients[:3]:
            assert waiting.park(newcomer) is None
        await passes(1.0)
        assert len(waiting) == 3
        await passes(2.0)
        assert not len(waiting)

    assert parked(play) == [0, 1, 2]


def test_clients_that_left_or_waited_for_too_long_are_closed(clients: list[tuple[Newcomer, socket.socket]]) -> None:
    async def play(waiting: Newcomers, loop_time: LoopTime) -> None:
        payer = loop_time.payer(HOSTILE)
        payer.level = -0.5
        waiting.park(clients[0][0])
        clients[0][1].close()
        waiting.park(clients[1][0])
        await passes(3.0)
        payer.level = -2.5
        waiting.park(clients[2][0])
        await passes(20.0)

    assert parked(play) == [1]
    assert clients[0][0].client.fileno() == clients[2][0].client.fileno() == -1


def test_the_oldest_client_of_an_address_makes_room(clients: list[tuple[Newcomer, socket.socket]]) -> None:
    most = newcomers.MOST_PER_ADDRESS

    async def play(waiting: Newcomers, loop_time: LoopTime) -> None:
        loop_time.payer(HOSTILE).level = -0.5
        closed = [displaced for newcomer, _ in clients if (displaced := waiting.park(newcomer))]
        assert closed == [newcomer for newcomer, _ in clients[: len(clients) - most]]
        assert len(waiting) == most
        await asyncio.sleep(0)

    assert parked(play) == []
    assert all(newcomer.client.fileno() == -1 for newcomer, _ in clients)


def test_clients_are_closed_if_one_can_not_be_taken(clients: list[tuple[Newcomer, socket.socket]]) -> None:
    clock, taken = ManualClock(), list[int]()

    def take(newcomer: Newcomer) -> None:
        if newcomer.port == 1:
            raise OSError("a client can't be taken")
        taken.append(newcomer.port)

    async def run() -> None:
        loop_time = LoopTime(clock=clock)
        waiting = Newcomers(loop_time, take, seconds=SECONDS)
        loop_time.payer(HOSTILE).level = -0.1
        for newcomer, _ in clients[:3]:
            waiting.park(newcomer)
        await passes(2.0)
        assert len(waiting) == 0
        assert [newcomer.client.fileno() == -1 for newcomer, _ in clients[:3]] == [False, True, True]
        loop_time.payer(HOSTILE).level = -0.1
        waiting.park(clients[3][0])
        await passes(2.0)
        assert len(waiting) == 0
        waiting.close()

    run_in_virtual_time(run(), clock)
    assert taken == [0, 3]
