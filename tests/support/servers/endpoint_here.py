"""An endpoint in a thread: quicker than the command."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from archiver.config import Config
from archiver.serve.kafka.endpoint import Endpoint, Listening

_SECONDS = 30.0


@contextmanager
def serving_here(config: Config) -> Iterator[str]:
    """Raises the endpoint's errors."""
    events: queue.Queue[str | BaseException] = queue.Queue()
    stopping: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        stop = asyncio.Event()
        stopping.append((asyncio.get_running_loop(), stop))

        def ready(listening: Listening) -> None:
            events.put(listening.advertise)

        await Endpoint(config).run(stop, ready)

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            events.put(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    result = events.get(timeout=_SECONDS)
    if isinstance(result, BaseException):
        raise result
    try:
        yield result
    finally:
        ((loop, stop),) = stopping
        loop.call_soon_threadsafe(stop.set)
        thread.join(_SECONDS)
        assert not thread.is_alive()
