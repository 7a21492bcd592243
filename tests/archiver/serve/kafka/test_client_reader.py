"""Memory of a connection's waiting requests."""

from __future__ import annotations

import asyncio

from archiver.serve.kafka.client_reader import READ_BYTES, ClientProtocol, ClientReader


class PausableTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


def test_a_connection_keeps_64_kib_of_unread_requests() -> None:
    async def play() -> None:
        transport = PausableTransport()
        protocol = ClientProtocol(ClientReader(), memoryview(bytearray(READ_BYTES)))
        protocol.connection_made(transport)
        kept = 0
        while not transport.is_paused:
            size = len(protocol.get_buffer(-1))
            protocol.buffer_updated(size)
            kept += size
        assert READ_BYTES < kept <= 64 << 10

    asyncio.run(play())


def test_a_closed_connection_gives_up_its_reader() -> None:
    """asyncio's TLS keeps the protocol, and a reader keeps its transport."""

    async def play() -> ClientProtocol:
        protocol = ClientProtocol(ClientReader(), memoryview(bytearray(READ_BYTES)))
        protocol.connection_made(PausableTransport())
        protocol.connection_lost(None)
        protocol.buffer_updated(1)
        return protocol

    assert not any(isinstance(value, ClientReader) for value in vars(asyncio.run(play())).values())


def test_frames_arrive_whole_however_they_are_split() -> None:
    async def play() -> None:
        reader, transport = ClientReader(), PausableTransport()
        protocol = ClientProtocol(reader, memoryview(bytearray(READ_BYTES)))
        protocol.connection_made(transport)
        sent = bytes(range(256)) * 1000
        received = asyncio.ensure_future(reader.readexactly(len(sent)))
        for start in range(0, len(sent), 1000):
            part = sent[start : start + 1000]
            protocol.get_buffer(-1)[: len(part)] = part
            protocol.buffer_updated(len(part))
            await asyncio.sleep(0)
            assert not transport.is_paused
        assert await received == sent

    asyncio.run(play())
