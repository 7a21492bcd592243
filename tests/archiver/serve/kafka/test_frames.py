"""Answers on a real socket."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from archiver.serve.kafka.frames import write_frame

DRAW = random.Random(3)
SIZES = {
    "nothing": [],
    "empty ones": [0, 0, 5, 0],
    "a Fetch response": [39, 990_000, 3, 145_000, 0, 145_000, 1, 1_200_000, 2],
    "more parts than one call takes": [3, 70_000] * 1500,
    "more than fits": [20 << 20, 1, 5 << 20],
}


def with_client(play: Callable[[asyncio.StreamWriter, socket.socket], Awaitable[None]]) -> None:
    async def run() -> None:
        accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        async with await asyncio.start_server(lambda _, writer: accepted.set_result(writer), "127.0.0.1", 0) as server:
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            with client:
                client.connect(server.sockets[0].getsockname())
                writer = await accepted
                await play(writer, client)
                writer.transport.abort()

    asyncio.run(run())


def taken(client: socket.socket, size: int) -> bytes:
    with client.makefile("rb") as stream:
        return stream.read(size)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_frames_come_whole_and_in_order(sizes: list[int]) -> None:
    parts: list[bytes | memoryview] = [memoryview(DRAW.randbytes(size)) for size in sizes]
    body = b"".join(parts)
    frame = len(body).to_bytes(4, "big") + body

    async def play(writer: asyncio.StreamWriter, client: socket.socket) -> None:
        reading = asyncio.create_task(asyncio.to_thread(taken, client, 2 * len(frame)))
        for _ in range(2):  # the second one comes while a part of the first one may still wait
            await write_frame(writer, parts, slice_seconds=30.0)
        assert await reading == frame * 2

    with_client(play)


def test_what_fits_is_sent_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    writev = os.writev

    def counted(number: int, buffers: Any) -> int:
        calls.append(writev(number, buffers))
        return calls[-1]

    async def play(writer: asyncio.StreamWriter, client: socket.socket) -> None:
        monkeypatch.setattr(os, "writev", counted)
        monkeypatch.setattr(writer, "write", None)
        await write_frame(writer, [b"head", bytes(9000), b"tail"], slice_seconds=30.0)
        assert calls == [9012]
        assert len(taken(client, 9012)) == 9012

    with_client(play)


def test_a_client_that_stops_is_let_go() -> None:
    async def play(writer: asyncio.StreamWriter, _: socket.socket) -> None:
        writer.transport.set_write_buffer_limits(256 << 10)
        with pytest.raises(TimeoutError):
            await write_frame(writer, [bytes(64 << 20)], slice_seconds=0.3)
        assert writer.transport.get_write_buffer_size() <= 1 << 20

    with_client(play)


def test_a_client_that_is_gone_is_a_lost_connection() -> None:
    async def play(writer: asyncio.StreamWriter, client: socket.socket) -> None:
        async def many() -> None:
            for _ in range(100):
                await write_frame(writer, [bytes(1 << 20)], slice_seconds=5.0)

        client.close()
        with pytest.raises(ConnectionError):
            await many()

    with_client(play)
