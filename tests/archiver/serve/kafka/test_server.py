"""Listening, and answers that clients take slowly."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from archiver.errors import ConfigError
from archiver.serve.kafka.connection import ConnectionLimits
from archiver.serve.kafka.frames import write_frame
from archiver.serve.kafka.server import Server
from archiver.serve.security import OpenDoor

LIMITS = ConnectionLimits(most_request_bytes=1 << 20, idle_seconds=60.0)


def server() -> Server:
    return Server(LIMITS, most_connections=10, door=OpenDoor())


def test_a_port_that_another_server_took_is_named_at_any_time() -> None:
    async def play() -> None:
        nothing: Any = None
        first, second, third = server(), server(), server()
        port = await first.listen("127.0.0.1", 0)
        await second.listen("127.0.0.1", port)  # both are bound, and neither listens yet
        await first.start(nothing)
        for attempt in (second.start(nothing), third.listen("127.0.0.1", port)):
            with pytest.raises(ConfigError, match="can't be listened on") as told:
                await attempt
            assert told.value.context["address"] == f"127.0.0.1:{port}"
        await second.close()
        await first.close()

    asyncio.run(play())


class Taker:
    """A client that takes each slice after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.taken = 0

    def write(self, data: bytes) -> None:
        self.taken += len(data)

    async def drain(self) -> None:
        await asyncio.sleep(self._seconds)


def test_slow_clients_get_all_of_a_long_answer_and_those_that_stop_are_let_go() -> None:
    async def play() -> None:
        answer = [bytes(10 << 20)]
        slow: Any = Taker(0.01)
        await write_frame(slow, answer, slice_seconds=0.2)  # 0.4 s in all
        assert slow.taken == 4 + (10 << 20)
        stopped: Any = Taker(60.0)
        with pytest.raises(TimeoutError):
            await write_frame(stopped, answer, slice_seconds=0.2)

    asyncio.run(play())
