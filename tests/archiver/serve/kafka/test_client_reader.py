"""What a connection keeps of requests that wait for their turn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from archiver.serve.kafka.client_reader import READ_BYTES, ClientProtocol, ClientReader
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import ServedLake, Wire, framed, waiting_fetch
from tests.support.timing.eventually import eventually

SENT_BYTES = 1 << 20


def test_a_connection_keeps_64_kib_of_unread_requests(tmp_path: Path) -> None:
    lake = archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)
    with ServedLake(lake) as endpoint, Wire(endpoint.port) as wire:
        wire.send(framed(waiting_fetch(), 1))
        wire.socket.setblocking(False)  # noqa: FBT003 - its only way
        left = SENT_BYTES
        unread = 0

        def send() -> bool:
            nonlocal left, unread
            with suppress(BlockingIOError):
                left -= wire.socket.send(b"\0" * min(left, 64 << 10))
            buffers = [len(connection._reader._buffer) for connection in endpoint.server._open.values() if connection]
            unread = max([unread, *buffers])
            return unread > READ_BYTES

        eventually(send, "the server has stopped reading")
        assert unread <= 2 * READ_BYTES
        assert left > 0


def test_frames_arrive_whole_however_they_are_split() -> None:
    async def play() -> None:
        reader = ClientReader()
        protocol = ClientProtocol(reader, memoryview(bytearray(READ_BYTES)))
        sent = bytes(range(256)) * 1000
        received = asyncio.ensure_future(reader.readexactly(len(sent)))
        for start in range(0, len(sent), 1000):
            part = sent[start : start + 1000]
            protocol.get_buffer(-1)[: len(part)] = part
            protocol.buffer_updated(len(part))
            await asyncio.sleep(0)
        assert await received == sent

    asyncio.run(play())
