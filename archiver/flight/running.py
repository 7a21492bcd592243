"""Run a Flight endpoint until a signal comes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Final

from archiver.flight.endpoint import FlightEndpoint, FlightListening

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def run_until_stopped(endpoint: FlightEndpoint, ready: Callable[[FlightListening], None]) -> int:
    """Serve until SIGINT or SIGTERM; return the signal's number."""
    return asyncio.run(_run(endpoint, ready))


async def _run(endpoint: FlightEndpoint, ready: Callable[[FlightListening], None]) -> int:
    stop = asyncio.Event()
    signals: list[int] = []

    def end(number: int) -> None:
        signals.append(number)
        stop.set()

    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    await endpoint.run(stop, ready)
    return signals[0]
