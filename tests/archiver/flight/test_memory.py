"""Memory of unacknowledged messages is bounded."""

from __future__ import annotations

import asyncio

import pytest

from archiver.errors import IntakeFull
from archiver.flight.memory import MessageMemory


def test_a_message_waits_for_room() -> None:
    async def run() -> None:
        memory = MessageMemory(100)
        await memory.take(60)
        waiting = asyncio.create_task(memory.take(60))
        await asyncio.sleep(0)
        assert not waiting.done()
        memory.give_back(60)
        await waiting
        assert memory.used == 60

    asyncio.run(run())


def test_a_message_without_room_is_refused() -> None:
    async def run() -> None:
        memory = MessageMemory(100, patience=0.0)
        await memory.take(500)
        with pytest.raises(IntakeFull, match="as many unacknowledged rows as") as caught:
            await memory.take(1)
        assert caught.value.context["retry_seconds"] == 1.0
        memory.give_back(500)
        await memory.take(1)
        assert memory.used == 1

    asyncio.run(run())
