"""Listening, and answers to slow clients."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
import time
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from archiver.errors import ConfigError
from archiver.serve.kafka import connection
from archiver.serve.kafka.connection import ConnectionLimits
from archiver.serve.kafka.frames import write_frame
from archiver.serve.kafka.server import Server
from archiver.serve.kafka.service import payer_of
from archiver.serve.security import OpenDoor
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.nodes_in_memory import NodesInMemory
from tests.support.servers.served_lake import SECONDS, OffsetsInMemory, ServedLake, Wire, framed, request, response
from tests.support.timing.eventually import comes_true, until
from tests.support.timing.virtual_loop import ManualClock, passes, run_in_virtual_time

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
            with pytest.raises(ConfigError, match="can't listen on this address") as caught:
                await attempt
            assert caught.value.context["address"] == f"127.0.0.1:{port}"
        await second.close()
        await first.close()

    asyncio.run(play())


class Taker:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.taken = 0
        self.transport = self

    def get_write_buffer_size(self) -> int:
        return 1

    def get_extra_info(self, _name: str) -> None:
        return None

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.taken += len(data)

    async def drain(self) -> None:
        await passes(self._seconds)


def test_slow_clients_get_long_answers_and_stalled_ones_go() -> None:
    async def play() -> None:
        answer = [bytes(10 << 20)]
        slow: Any = Taker(0.01)
        await write_frame(slow, answer, slice_seconds=0.2)  # 0.4 s in all
        assert slow.taken == 4 + (10 << 20)
        stopped: Any = Taker(60.0)
        with pytest.raises(TimeoutError):
            await write_frame(stopped, answer, slice_seconds=0.2)

    run_in_virtual_time(play(), ManualClock())


def test_shutdown_answers_waiters_and_keeps_acked_commits(tmp_path: Path) -> None:
    class Slow(OffsetsInMemory):
        gate, asked = threading.Event(), threading.Event()

        def commit(self, group_id: str, offsets: Any, budget: Any = None, **claim: Any) -> None:
            self.asked.set()
            assert self.gate.wait(10)
            super().commit(group_id, offsets, budget)

    offsets, nodes = Slow(), NodesInMemory()
    lake = archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)
    with ServedLake(lake, offsets=offsets, nodes=nodes) as endpoint, ExitStack() as clients:
        reading, joining, committing, idle, member = (clients.enter_context(Wire(endpoint.port)) for _ in range(5))
        joined = member.ask(join("", version=3))
        member.ask(request(14, 3, group_id="g", member_id=joined.member_id, generation_id=joined.generation_id))
        idle.ask(request(12, 4, group_id="none", member_id="m"))
        reading.send(framed(fetching(), 1))
        joining.send(framed(join("", version=3), 1))
        committing.send(framed(commit(), 1))
        assert offsets.asked.wait(10)
        time.sleep(0.2)
        ending = asyncio.run_coroutine_threadsafe(endpoint.server.end_in_order(SECONDS), endpoint.loop)
        assert idle.is_closed()
        (read,) = response(load_response_schema(1, 12), reading.receive(), 1).responses
        assert read.partitions[0].error_code == ErrorCode.none
        assert not comes_true(lambda: nodes.live() != 1, 0.1), "it leaves when what is kept is done"
        offsets.gate.set()
        (topic,) = response(load_response_schema(8, 9), committing.receive(), 1).topics
        assert topic.partitions[0].error_code == ErrorCode.none
        assert offsets.groups() == ("commits",)
        assert response(load_response_schema(11, 3), joining.receive(), 1).error_code == ErrorCode.not_coordinator
        ending.result(SECONDS)
        assert nodes.live() == 0
        assert endpoint.server.connections == 0


def test_shutdown_finishes_a_slowly_taken_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_FLUSH_SECONDS", SECONDS)
    size = 240 << 10  # more than the sockets keep, and less than what writing it would wait for
    lake = archived(tmp_path / "lake", build([Record(value=os.urandom(size))]), end=1)
    with ServedLake(lake) as endpoint:
        for listener in endpoint.server._listeners:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # sockets that it accepts have it too
        with Wire(endpoint.port) as wire:
            wire.send(framed(fetching(0), 1))
            assert select.select([wire.socket], [], [], SECONDS)[0]
            endpoint.loop.call_soon_threadsafe(endpoint.stop.set)
            endpoint.thread.join(0.5)
            (read,) = response(load_response_schema(1, 12), wire.receive(), 1).responses
            assert len(read.partitions[0].records) > size


def fetching(offset: int = 10) -> Any:
    return request(
        1,
        12,
        topic="orders",
        partition=0,
        fetch_offset=offset,
        max_bytes=1 << 20,
        partition_max_bytes=1 << 20,
        min_bytes=1,
        max_wait=timedelta(seconds=25),
        session_id=0,
        session_epoch=-1,
        forgotten_topics_data=(),
    )


def join(member_id: str, *, version: int) -> Any:
    long = timedelta(seconds=60)
    return request(
        11,
        version,
        group_id="g",
        member_id=member_id,
        session_timeout=long,
        rebalance_timeout=long,
        protocol_type="consumer",
    )


def commit() -> Any:
    nobody = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
    return request(8, 9, group_id="commits", name="orders", partition_index=0, committed_offset=3, **nobody)


def test_waiting_clients_are_closed_when_the_server_ends() -> None:
    async def play() -> None:
        async def leave() -> None:
            pass

        service: Any = SimpleNamespace(
            ending=asyncio.get_running_loop().create_future(), cluster=SimpleNamespace(close=leave)
        )
        ended = server()
        port = await ended.listen("127.0.0.1", 0)
        await ended.start(service)
        payer = ended.loop_time.payer(payer_of("127.0.0.1"))
        payer.level = -2.0
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await until(lambda: payer.waiting)
        await ended.end_in_order(1.0)
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        await ended.close()

    asyncio.run(play())
