"""Work for gone clients is given up."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from archiver.serve.kafka.client_reader import ClientReader
from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.connection import Connection
from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import SECONDS, ServedLake, Wire, framed, request, served, waiting_fetch
from tests.support.timing.eventually import eventually

UNREAD_BYTES = 96 << 10
"""More than the server reads ahead, and less than the system keeps beside that."""


def joining() -> Any:
    return request(
        11,
        3,
        group_id="g",
        member_id="",
        protocol_type="consumer",
        name="range",
        metadata=b"",
        session_timeout=timedelta(minutes=1),
        rebalance_timeout=timedelta(minutes=1),
    )


def close(wire: Wire) -> None:
    wire.socket.close()


def reset(wire: Wire) -> None:
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.socket.close()


def until_alone(endpoint: ServedLake) -> None:
    eventually(lambda: not endpoint.server.connections, "clients that are gone lose their places", seconds=SECONDS)


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    return archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)


@pytest.mark.parametrize("leave", [close, reset])
def test_a_client_that_is_gone_has_no_place(lake: Any, leave: Callable[[Wire], None]) -> None:
    with ServedLake(lake, half_closed_seconds=0.1) as endpoint:
        wires = [Wire(endpoint.port) for _ in range(20)]
        for wire in wires:
            wire.send(framed(waiting_fetch(), 1))
        with Wire(endpoint.port) as other_wire:
            other_wire.ask(request(3, 12, topics=None))
        for wire in wires:
            leave(wire)
        until_alone(endpoint)


def test_a_client_that_closed_its_half_gets_its_answer(lake: Any) -> None:
    with served(lake, half_closed_seconds=SECONDS) as (endpoint, wire):
        wire.send(framed(joining(), 1))  # the answer comes when the group's first wait is over
        wire.socket.shutdown(socket.SHUT_WR)
        assert wire.receive()[:4] == struct.pack(">i", 1)
        assert wire.is_closed()
        until_alone(endpoint)


def jam_thread(endpoint: ServedLake, gate: threading.Event) -> None:
    async def begin() -> None:
        loop_time = endpoint.server.loop_time
        endpoint.jam = asyncio.create_task(loop_time.in_thread(ClientTurns(loop_time, "jam"), gate.wait))  # type: ignore[attr-defined]

    endpoint.call(begin())


def many_offsets(partitions: int) -> Any:
    offsets = request(2, 7, replica_id=-1, name="orders", isolation_level=0, timestamp=-2, current_leader_epoch=-1)
    (topic,) = offsets.topics
    named = tuple(replace(topic.partitions[0], partition_index=number) for number in range(partitions))
    return replace(offsets, topics=(replace(topic, partitions=named),))


@pytest.mark.parametrize("leave", [close, reset])
def test_requests_that_were_not_read_hide_no_end(lake: Any, leave: Callable[[Wire], None]) -> None:
    with ServedLake(lake, half_closed_seconds=0.1) as endpoint:
        wire = Wire(endpoint.port)
        wire.send(framed(waiting_fetch(), 1))
        more = framed(request(3, 12, topics=None), 2)
        more = struct.pack(">i", len(more)) + more
        wire.socket.sendall(more * (UNREAD_BYTES // len(more)))
        eventually(lambda: endpoint.server.connections == 1, "the client is connected")
        leave(wire)
        until_alone(endpoint)


@pytest.mark.parametrize("leave", [close, reset])
def test_requests_that_wait_to_be_decoded_end_with_their_client(lake: Any, leave: Callable[[Wire], None]) -> None:
    gate = threading.Event()
    with ServedLake(lake, half_closed_seconds=0.1) as endpoint:
        jam_thread(endpoint, gate)
        try:
            wires = [Wire(endpoint.port) for _ in range(5)]
            for wire in wires:
                for number in range(2):  # the system keeps the second one: it knows the end only if all has come
                    wire.send(framed(many_offsets(5000), number))
            eventually(lambda: endpoint.server.connections == len(wires), "all are connected")
            for wire in wires:
                leave(wire)
            until_alone(endpoint)
        finally:
            gate.set()


@pytest.mark.parametrize("leave", [close, reset])
def test_gone_clients_leave_no_cycles(lake: Any, leave: Callable[[Wire], None]) -> None:
    with ServedLake(lake, half_closed_seconds=0.1) as endpoint:
        gc.collect()  # what tests before have left
        gc.disable()
        try:
            for _ in range(3):
                wire = Wire(endpoint.port)
                wire.send(framed(waiting_fetch(), 1))
                eventually(lambda: endpoint.server.connections, "the client is connected")
                leave(wire)
            until_alone(endpoint)
            eventually(
                lambda: not any(isinstance(kept, ClientReader | Connection) for kept in gc.get_objects()),
                "readers and connections are freed",
                every=0.1,
            )
        finally:
            gc.enable()


def test_a_server_that_ends_drops_long_answers(lake: Any) -> None:
    gate = threading.Event()
    ticks = count(1)
    try:
        with ServedLake(lake) as endpoint, ExitStack() as clients:
            endpoint.server.loop_time.clock = lambda: next(ticks) * 0.005  # each look takes longer than a turn
            jam_thread(endpoint, gate)
            wires = [clients.enter_context(Wire(endpoint.port)) for _ in range(5)]
            for wire in wires:
                wire.send(framed(many_offsets(505), 1))
            time.sleep(0.5)
            assert endpoint.server.connections == len(wires)
            began = time.monotonic()
            endpoint.call(endpoint.server.end_in_order(SECONDS))
            assert time.monotonic() - began < 2
            assert all(wire.is_closed() for wire in wires)
    finally:
        gate.set()


def test_requests_wait_for_long_work_for_a_bounded_time(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    gate = threading.Event()
    with ServedLake(lake, long_work_seconds=0.3) as endpoint, Wire(endpoint.port) as wire:
        jam_thread(endpoint, gate)
        try:
            wire.send(framed(many_offsets(5000), 1))
            assert wire.is_closed()
            until_alone(endpoint)
        finally:
            gate.set()
    assert "its long answer had no turn within 0.3 seconds" in caplog.text
