"""How an engine ends."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from archiver.engine.spark import SparkEngine


class Accumulators:
    def __init__(self, address: object) -> None:
        self.server_address = address
        self.asked, self.ended = threading.Event(), threading.Event()

    def shutdown(self) -> None:
        self.asked.set()
        assert self.ended.wait(60)


class Session:
    def __init__(self, server: Accumulators) -> None:
        self.sparkContext = SimpleNamespace(_accumulatorServer=server, defaultParallelism=1, _gateway=None)
        self.stopped_with: list[object] = []

    def stop(self) -> None:
        self.stopped_with.append(self.sparkContext._accumulatorServer)


@pytest.mark.parametrize(("address", "waits"), [(("127.0.0.1", 1), False), ("/tmp/socket", True)])
def test_pysparks_accumulators_are_not_waited_for(address: object, *, waits: bool) -> None:
    server = Accumulators(address)
    session: Any = Session(server)
    SparkEngine(session, owned=True).close()
    assert session.stopped_with == [server if waits else None]
    if not waits:
        assert server.asked.wait(10)
    assert server.asked.is_set() is not waits
    server.ended.set()
