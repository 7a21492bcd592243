"""Slow consumers and idle connections, as tasks of one process."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Self

from kio.index import load_response_schema

from tests.support.servers.served_lake import framed, request, response

FETCH = 1
API_VERSIONS = 18
VERSION = 11
ASKED_BYTES = 512 << 10
SOCKET_BYTES = 16 << 10
PIECE_BYTES = 4 << 10
SECONDS = 30.0


class SlowReaders:
    """With `may_be_cut` the last batch may be truncated: brokers send bytes up to the limit."""

    def __init__(
        self,
        address: str,
        topic: str,
        ends: Mapping[int, int],
        *,
        slow: int,
        idle: int,
        bytes_per_second: int,
        may_be_cut: bool = False,
    ) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port = host, int(port)
        self._topic, self._ends = topic, ends
        self._slow, self._idle, self._pace = slow, idle, PIECE_BYTES / bytes_per_second
        self._may_be_cut = may_be_cut
        self.taken_bytes = self.answers = self.rounds = 0
        self.wrong: list[str] = []
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(60):
            raise TimeoutError("not all could connect")
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(60)

    def alive(self) -> int:
        return asyncio.run_coroutine_threadsafe(self._asked_again(), self._loop).result(120)

    async def _run(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._idlers = [await self._connect() for _ in range(self._idle)]
        for item in self._idlers:
            await _answered(*item, request(API_VERSIONS, 3))
        slow = [asyncio.create_task(self._read(number)) for number in range(self._slow)]
        self._ready.set()
        await self._over.wait()
        for item in slow:
            item.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        for _, writer in self._idlers:
            writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        bare = socket.socket()
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
        bare.setblocking(False)  # noqa: FBT003 - its only argument
        await asyncio.get_running_loop().sock_connect(bare, (self._host, self._port))
        return await asyncio.open_connection(sock=bare, limit=PIECE_BYTES)

    async def _asked_again(self) -> int:
        count = 0
        for connection in self._idlers:
            try:
                async with asyncio.timeout(SECONDS):
                    await _answered(*connection, request(API_VERSIONS, 3))
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                continue
            count += 1
        return count

    async def _read(self, number: int) -> None:
        partition = sorted(self._ends)[number % len(self._ends)]
        offset = self._ends[partition] * number // self._slow
        try:
            reader, writer = await self._connect()
            while True:
                fetched = await self._fetched(reader, writer, partition, offset)
                offset = self._checked(fetched, partition, offset)
                if offset >= self._ends[partition]:
                    offset = 0
                    self.rounds += 1
        except (OSError, asyncio.IncompleteReadError, AssertionError) as error:
            self.wrong.append(f"slow consumer {number}, at {offset} of {partition}: {error!r}")

    async def _fetched(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, partition: int, offset: int
    ) -> bytes:
        asked = request(
            FETCH,
            VERSION,
            replica_id=-1,
            max_wait=timedelta(milliseconds=500),
            min_bytes=1,
            max_bytes=ASKED_BYTES,
            isolation_level=1,
            session_id=0,
            session_epoch=-1,
            topic=self._topic,
            partition=partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            log_start_offset=-1,
            partition_max_bytes=ASKED_BYTES,
            forgotten_topics_data=(),
            rack_id="",
        )
        frame = await _answered(reader, writer, asked, pace=self._pace)
        self.taken_bytes += len(frame)
        self.answers += 1
        answer = response(load_response_schema(FETCH, VERSION), frame, 1)
        (part,) = answer.responses[0].partitions
        assert part.error_code.value == 0, part.error_code
        return bytes(part.records or b"")

    def _checked(self, records: bytes, partition: int, offset: int) -> int:
        at = 0
        while at < len(records):
            if self._may_be_cut and at and at + _length(records, at) > len(records):
                return offset
            (base,) = struct.unpack_from(">q", records, at)
            (last_delta,) = struct.unpack_from(">i", records, at + 23)
            assert base <= offset <= base + last_delta if at == 0 else base == offset, (base, offset)
            offset = base + last_delta + 1
            at += _length(records, at)
        assert at == len(records), f"{len(records)} bytes end within a batch that ends at {at}"
        assert records or offset >= self._ends[partition], "nothing came"
        return offset


def _length(records: bytes, at: int) -> int:
    if at + 12 > len(records):
        return len(records)
    (length,) = struct.unpack_from(">i", records, at + 8)
    return 12 + int(length)


async def _answered(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: Any, *, pace: float = 0.0
) -> bytes:
    frame = framed(asked, 1)
    writer.write(struct.pack(">i", len(frame)) + frame)
    await writer.drain()
    (left,) = struct.unpack(">i", await reader.readexactly(4))
    content = bytearray()
    while len(content) < left:
        content += await reader.readexactly(min(PIECE_BYTES, left - len(content)))
        await asyncio.sleep(pace)
    return bytes(content)
