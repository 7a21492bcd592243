"""Memory of incoming requests is bounded."""

from __future__ import annotations

import asyncio
import struct
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from archiver.errors import BadRequest
from archiver.serve.kafka import connection
from archiver.serve.kafka.frames import read_rest
from archiver.serve.kafka.request_memory import SMALL, RequestMemory
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import OffsetsInMemory, Wire, framed, request, served
from tests.support.timing.eventually import comes_true, eventually, settle
from tests.support.timing.virtual_loop import ManualClock, passes, run_in_virtual_time


def lake(folder: Path) -> Any:
    return archived(folder / "lake", build([Record(value=b"x")] * 10), end=10)


def large_commit() -> Any:
    return request(
        8,
        9,
        group_id="g",
        name="orders",
        partition_index=0,
        committed_offset=1,
        generation_id_or_member_epoch=-1,
        member_id="x" * 100_000,
        group_instance_id=None,
    )


def test_room_is_taken_by_what_came_and_given_back() -> None:
    async def play() -> None:
        memory = RequestMemory(100)
        with memory.hold("a") as first, memory.hold("b") as second:
            await first.grow(60)
            await second.grow(40)
            waiting = asyncio.ensure_future(second.grow(10))
            await settle()
            assert not waiting.done()
            await first.grow(60)  # the oldest goes on: else both would wait, half read
        assert memory.bytes == 0
        waiting.cancel()

    asyncio.run(play())


def test_the_next_one_goes_on_when_the_oldest_is_done() -> None:
    async def play() -> None:
        memory = RequestMemory(100)
        with memory.hold() as second:
            with memory.hold() as first:
                await first.grow(90)
                waiting = asyncio.ensure_future(second.grow(500))
                await settle()
                assert not waiting.done()
            await asyncio.wait_for(waiting, 1)
            assert memory.bytes == 500

    asyncio.run(play())


def test_payer_gets_a_quarter_and_oldest_request_proceeds() -> None:
    async def play() -> None:
        memory = RequestMemory(400)
        with memory.hold("slow") as oldest, memory.hold("slow") as next_one, memory.hold("other") as third:
            await oldest.grow(90)
            waiting = asyncio.ensure_future(next_one.grow(20))
            await third.grow(200)
            await settle()
            assert not waiting.done()
            await oldest.grow(200)
            waiting.cancel()
        assert memory.bytes == 0

    asyncio.run(play())


def test_a_frame_that_comes_too_slowly_is_given_up_in_time() -> None:
    async def play() -> None:
        reader = asyncio.StreamReader()

        async def drips() -> None:
            while True:
                reader.feed_data(bytes(SMALL))
                await passes(0.85)

        task = asyncio.ensure_future(drips())
        with pytest.raises(BadRequest, match="too slowly"):  # 128 KiB a second, and a part's time
            await read_rest(reader, 6 * SMALL, part_seconds=0.9, grow=lambda size: settle(1))
        task.cancel()

    run_in_virtual_time(play(), ManualClock())


def test_frames_that_are_only_announced_hold_up_nobody(tmp_path: Path) -> None:
    with served(lake(tmp_path), request_memory=200_000) as (endpoint, wire):
        idle = [Wire(endpoint.port) for _ in range(5)]
        for client in idle:
            client.socket.sendall(struct.pack(">i", 1_000_000) + b"\0\3")
        assert wire.ask(large_commit()).topics[0].partitions[0].error_code == ErrorCode.none
        for client in idle:
            client.socket.close()


def test_room_is_held_until_the_request_is_answered(tmp_path: Path) -> None:
    class Slow(OffsetsInMemory):
        gate = threading.Event()

        def commit(self, group_id: str, offsets: Any, budget: Any = None, **claim: Any) -> None:
            assert self.gate.wait(10)
            super().commit(group_id, offsets, budget, **claim)

    offsets = Slow()
    with served(lake(tmp_path), offsets=offsets) as (endpoint, wire):
        wire.send(framed(large_commit(), 1))
        eventually(lambda: endpoint.server.request_bytes > 100_000)
        assert not comes_true(lambda: endpoint.server.request_bytes <= 100_000, 0.05)
        offsets.gate.set()
        wire.receive()
        eventually(lambda: endpoint.server.request_bytes == 0)


def test_large_requests_are_read_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    real = connection.request_of

    def noted(*args: Any) -> Any:
        threads.append(threading.current_thread())
        return real(*args)

    monkeypatch.setattr(connection, "request_of", noted)
    with served(lake(tmp_path)) as (endpoint, wire):
        wire.ask(request(12, 4, group_id="g", member_id="m"))
        wire.ask(request(12, 4, group_id="g", member_id="m"))
        wire.ask(large_commit())
        first, small, large = threads
        assert first is not endpoint.thread, "the first of its version loads the classes of its messages"
        assert small is endpoint.thread
        assert large is not endpoint.thread


def test_freed_room_wakes_only_requests_that_fit() -> None:
    async def play() -> None:
        memory = RequestMemory(400)
        with memory.hold("a") as oldest:
            await oldest.grow(100)
            with ExitStack() as holders:
                several = [holders.enter_context(memory.hold("a")) for _ in range(50)]
                waits = [asyncio.ensure_future(waiter.grow(50)) for waiter in several]
                larger = holders.enter_context(memory.hold("b"))
                await asyncio.wait_for(larger.grow(100), 1)
                await settle(1)
                memory.free(oldest)
                await settle(1)
                assert [wait.done() for wait in waits] == [True] * 2 + [False] * 48
                assert memory.bytes == 200
                waits[10].cancel()
                for waiter, wait in zip(several, waits, strict=True):
                    if wait is not waits[10]:
                        await asyncio.wait_for(wait, 1)
                        assert memory.bytes <= 200
                    memory.free(waiter)
        assert memory.bytes == 0

    asyncio.run(play())
