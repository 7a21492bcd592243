"""Memory that streams take and release."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import pyarrow as pa
import pytest

from archiver.access.rules import Access, Principal
from archiver.errors import IntakeFull
from archiver.flight.identity import CallIdentity
from archiver.flight.memory import MessageMemory
from archiver.flight.service import FlightLimits, FlightService
from archiver.intake.batches import Acknowledgement, IntakeBatch
from tests.support.clients.flight_client import records
from tests.support.clients.flight_messages import put_messages
from tests.support.intake.encodings import RAW
from tests.support.timing.eventually import until

WINDOW: Final = 2
SENT: Final = WINDOW + 2
"""Batches that a stream has at a time: one is awaited, `WINDOW` wait, and the next waits for a place."""


class WaitingTopic:
    partitions = 1
    encoding = RAW

    def __init__(self) -> None:
        self.answers: list[Future[Acknowledgement]] = []

    def append(self, _batch: IntakeBatch) -> Future[Acknowledgement]:
        self.answers.append(Future())
        return self.answers[-1]

    def acknowledge(self) -> None:
        for number, answer in enumerate(self.answers):
            if not answer.done():
                answer.set_result(Acknowledgement(number, ()))


class _Call:
    def invocation_metadata(self) -> tuple[()]:
        return ()

    def auth_context(self) -> dict[str, Any]:
        return {}

    def peer(self) -> str:
        return "ipv4:192.0.2.1:1"

    async def abort(self, _status: Any, message: str, _trailers: Any) -> None:
        raise ConnectionAbortedError(message)


class _Anybody:
    async def identify(self, *_: Any) -> CallIdentity:
        return CallIdentity(Access(Principal("a"), ()), lambda: False)


async def sent(messages: Sequence[bytes]) -> AsyncIterator[bytes]:
    for message in messages:
        yield message
    await asyncio.Event().wait()


def play(scene: Callable[[FlightService, WaitingTopic, MessageMemory], Awaitable[None]]) -> None:
    async def run() -> None:
        topic, memory = WaitingTopic(), MessageMemory(1 << 24)
        topics: Any = {"sensors": topic}
        identities: Any = _Anybody()
        limits = FlightLimits(message_bytes=1 << 20, window=WINDOW)
        with ThreadPoolExecutor(1) as workers:
            await scene(FlightService(topics, identities, limits=limits, memory=memory, workers=workers), topic, memory)

    asyncio.run(run())


async def consumed(service: FlightService, messages: Sequence[bytes]) -> None:
    async for _ in service.do_put(sent(messages), _Call()):
        pass


def test_a_broken_stream_gives_its_memory_back() -> None:
    async def scene(service: FlightService, topic: WaitingTopic, memory: MessageMemory) -> None:
        stream = asyncio.create_task(consumed(service, put_messages(records(0, 10), 10)))
        await until(lambda: len(topic.answers) == SENT)
        topic.answers[0].set_exception(IntakeFull("full", retry_seconds=1.0))
        with pytest.raises(ConnectionAbortedError):
            await stream
        assert len(topic.answers) == SENT
        assert memory.used > 0
        topic.acknowledge()
        await until(lambda: memory.used == 0)

    play(scene)


def test_a_cancelled_stream_keeps_memory_until_the_log_is_done() -> None:
    async def scene(service: FlightService, topic: WaitingTopic, memory: MessageMemory) -> None:
        stream = asyncio.create_task(consumed(service, put_messages(records(0, 10), 10)))
        await until(lambda: len(topic.answers) == SENT)
        used = memory.used
        stream.cancel()
        await asyncio.wait([stream])
        await asyncio.sleep(0)
        assert memory.used == used
        topic.acknowledge()
        await until(lambda: memory.used == 0)

    play(scene)


def test_a_client_that_does_not_read_its_answers_has_no_memory() -> None:
    async def scene(service: FlightService, topic: WaitingTopic, memory: MessageMemory) -> None:
        answers = service.do_put(sent(put_messages(records(0, 10), 10)), _Call())
        first = asyncio.ensure_future(anext(answers))
        await until(lambda: len(topic.answers) == SENT)
        topic.acknowledge()
        await first  # and no further answer is read
        await until(lambda: memory.used == 0)

    play(scene)


def test_memory_counts_what_the_log_keeps() -> None:
    """A small compressed message of many empty values takes far more in the log."""
    rows = pa.record_batch([pa.array([b""] * 50_000, pa.binary())], names=["value"])

    async def scene(service: FlightService, topic: WaitingTopic, memory: MessageMemory) -> None:
        messages = put_messages(rows, 1, compression="zstd")
        assert len(messages[1]) < 5_000
        stream = asyncio.create_task(consumed(service, messages))
        await until(lambda: len(topic.answers) == 1)
        assert memory.used >= 20 * 50_000
        topic.acknowledge()
        stream.cancel()
        await asyncio.wait([stream])

    play(scene)
