"""Long answers share memory."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from archiver.serve.kafka.client_turns import ClientTurns
from archiver.serve.kafka.connection import Connection, ConnectionLimits, ConnectionResources
from archiver.serve.kafka.loop_time import LoopTime
from archiver.serve.kafka.request_memory import SMALL, RequestMemory
from tests.support.timing.eventually import settle
from tests.support.timing.virtual_loop import ManualClock, passes, run_in_virtual_time


class Writer:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.transport = self
        self.size = 0
        self.acts: list[str] = []

    def get_extra_info(self, _: str) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return 1

    def write(self, data: Any) -> None:
        self.size += len(data)

    async def drain(self) -> None:
        await passes(self._seconds)

    def close(self) -> None:
        self.acts.append("close")

    async def wait_closed(self) -> None:
        await asyncio.Event().wait()

    def abort(self) -> None:
        self.acts.append("abort")


def connection(writer: Writer, answers: RequestMemory, *, bytes_per_second: int = 1 << 30) -> Connection:
    anything: Any = SimpleNamespace()
    client: Any = SimpleNamespace(turns=ClientTurns(LoopTime(), "a"), sessions=SimpleNamespace(close=lambda: None))
    stream: Any = writer
    return Connection(
        anything,
        stream,
        client,
        service=anything,
        resources=ConnectionResources(
            limits=ConnectionLimits(
                most_request_bytes=1, idle_seconds=1.0, answer_seconds=0.2, answer_bytes_per_second=bytes_per_second
            ),
            memory=RequestMemory(1),
            answers=answers,
        ),
    )


def test_an_answer_waits_for_room_for_a_limited_time() -> None:
    async def play() -> None:
        answers = RequestMemory(4 * SMALL)
        writer = Writer(0.0)
        with answers.hold("b") as second:
            await second.grow(4 * SMALL)
            served = connection(writer, answers)
            with pytest.raises(TimeoutError):
                await served._write([bytes(2 * SMALL)])
            assert served._late == "there was no memory for its response in time (response_memory)"
            assert answers.bytes == 4 * SMALL
        await connection(writer, answers)._write([bytes(2 * SMALL)])
        assert answers.bytes == 0

    run_in_virtual_time(play(), ManualClock())


def test_answer_taken_too_slowly_in_slices_is_given_up() -> None:
    clock = ManualClock()

    async def play() -> None:
        answers = RequestMemory(1 << 30)
        served = connection(Writer(0.1), answers)
        with pytest.raises(TimeoutError):
            await served._write([bytes(8 << 20)])
        assert clock.now < 1.5, "each of its 32 slices is taken in time"
        assert served._late == "it doesn't read its responses"
        assert answers.bytes == 0

    run_in_virtual_time(play(), clock)


@pytest.mark.parametrize(
    ("parts", "bytes_per_second"), [([bytes(1 << 20)], 1 << 20), ([memoryview(bytes(1 << 20))], 1 << 30)]
)
def test_slow_clients_get_answers_at_the_least_rate(parts: Any, bytes_per_second: int) -> None:
    async def play() -> None:
        writer = Writer(0.15)
        await connection(writer, RequestMemory(1 << 30), bytes_per_second=bytes_per_second)._write(parts)
        assert writer.size == (1 << 20) + 4

    run_in_virtual_time(play(), ManualClock())


def test_connection_cut_off_while_ending_leaves_no_transport() -> None:
    async def play() -> None:
        writer = Writer(0.0)
        served = connection(writer, RequestMemory(1))
        served.end_after_answer()
        ending = asyncio.ensure_future(served._end())
        await settle()
        assert writer.acts == ["close"]
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        assert writer.acts == ["close", "abort"]

    run_in_virtual_time(play(), ManualClock())
