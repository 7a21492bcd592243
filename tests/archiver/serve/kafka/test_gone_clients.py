"""Work for clients that are gone is given up; those that closed their half of a connection get their answer."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import SECONDS, ServedLake, Wire, framed, request, served


def waiting_fetch() -> Any:
    return request(
        1,
        11,
        replica_id=-1,
        topic="orders",
        partition=0,
        fetch_offset=10,
        max_wait=timedelta(seconds=60),
        min_bytes=1,
        max_bytes=1 << 20,
        partition_max_bytes=1 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        current_leader_epoch=-1,
        forgotten_topics_data=(),
    )


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
    until = time.monotonic() + SECONDS
    while endpoint.server.connections:
        assert time.monotonic() < until, "clients that are gone still have their places"
        time.sleep(0.02)


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    return archived(tmp_path / "lake", build([Record(value=b"x")] * 10), end=10)


@pytest.mark.parametrize("leave", [close, reset])
def test_a_client_that_is_gone_has_no_place(lake: Any, leave: Callable[[Wire], None]) -> None:
    with ServedLake(lake, half_closed_seconds=0.1) as endpoint:
        wires = [Wire(endpoint.port) for _ in range(20)]
        for wire in wires:
            wire.send(framed(waiting_fetch(), 1))
        with Wire(endpoint.port) as other:
            other.ask(request(3, 12, topics=None))
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
