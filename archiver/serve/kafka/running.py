"""Runs an endpoint in this process until a signal comes."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import sys
from collections.abc import Callable
from typing import Final

from archiver.serve import heap
from archiver.serve.kafka.endpoint import Endpoint, Listening

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_SWITCH_SECONDS: Final = 0.0005
"""How long a thread may keep the event loop from the interpreter: a tenth of Python's default.

The loop gives it up at each call of the system, a hundred times in a look at a hundred sockets.
"""


def run_until_stopped(endpoint: Endpoint, ready: Callable[[Listening], None]) -> int:
    """Return the signal: SIGINT, SIGTERM or (in a worker) for the parent's end."""
    return asyncio.run(_run(endpoint, ready))


def keep_loop_responsive() -> None:
    """Call it once all is loaded."""
    heap.leave_out_of_collections()
    sys.setswitchinterval(_SWITCH_SECONDS)


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
        keep_loop_responsive()
        ready(found)

    await endpoint.run(stop, begin)
    return came[0]
