"""Runs an endpoint in this process until a signal comes."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import Callable
from typing import Final

from archiver.serve import heap
from archiver.serve.kafka.endpoint import Endpoint, Listening

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def run_until_stopped(endpoint: Endpoint, ready: Callable[[Listening], None]) -> int:
    """Serve until SIGINT, SIGTERM or (in a worker) the parent's end; return the signal's number."""
    return asyncio.run(_run(endpoint, ready))


async def _run(endpoint: Endpoint, ready: Callable[[Listening], None]) -> int:
    stop = asyncio.Event()
    came: list[int] = []

    def ask(number: int) -> None:
        came.append(number)
        stop.set()
        if parent is not None:
            loop.remove_reader(parent.sentinel)

    loop = asyncio.get_running_loop()
    parent = multiprocessing.parent_process()
    for number in _SIGNALS:
        loop.add_signal_handler(number, ask, number)
    if parent is not None:
        loop.add_reader(parent.sentinel, ask, signal.SIGTERM)

    def begin(found: Listening) -> None:
        heap.leave_out_of_collections()
        ready(found)

    await endpoint.run(stop, begin)
    return came[0]
