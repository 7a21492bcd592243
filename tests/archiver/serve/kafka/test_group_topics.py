"""Patterns are compiled in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.group_topics import GroupTopics
from archiver.serve.kafka.loop_time import LoopTime
from tests.support.timing.eventually import settle


def played(scene: Coroutine[Any, Any, None]) -> None:
    async def play() -> None:
        async with asyncio.timeout(20):
            await scene

    asyncio.run(play())


def jammed(loop_time: LoopTime, gate: threading.Event) -> asyncio.Task[bool]:
    return asyncio.create_task(loop_time.in_thread(ClientTurns(loop_time, "jam"), gate.wait))


def test_a_pattern_is_not_compiled_for_clients_that_are_gone() -> None:
    async def scene() -> None:
        loop_time, topics, gate = LoopTime(), GroupTopics(), threading.Event()
        jam = jammed(loop_time, gate)
        await settle(1)
        gone = [asyncio.create_task(topics.matching("a.*", ClientTurns(loop_time, "a"))) for _ in range(3)]
        await settle()
        for request in gone:
            request.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        gate.set()
        await jam
        await loop_time.in_thread(ClientTurns(loop_time, "a"), lambda: None)  # behind the pattern
        assert (await topics.matching("", ClientTurns(loop_time, "a"))).matched("a.*") is None  # type: ignore[attr-defined]

    played(scene())


def test_a_pattern_is_compiled_while_one_request_waits_for_it() -> None:
    async def scene() -> None:
        loop_time, topics, gate = LoopTime(), GroupTopics(), threading.Event()
        jam = jammed(loop_time, gate)
        await settle(1)
        gone, waits = (asyncio.create_task(topics.matching("a.*", ClientTurns(loop_time, "a"))) for _ in range(2))
        await settle()
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        gate.set()
        await jam
        assert (await waits).matched("a.*") is not None  # type: ignore[attr-defined]

    played(scene())


def test_a_pattern_waits_for_the_thread_for_a_bounded_time() -> None:
    async def scene() -> None:
        loop_time, topics, gate = LoopTime(), GroupTopics(), threading.Event()
        jam = jammed(loop_time, gate)
        await settle(1)
        with pytest.raises(TimeoutError, match="no turn within"):
            await topics.matching("a.*", ClientTurns(loop_time, "a", long_wait=0.05))
        gate.set()
        await jam
        assert (await topics.matching("a.*", ClientTurns(loop_time, "a"))).matched("a.*") is not None  # type: ignore[attr-defined]

    played(scene())
