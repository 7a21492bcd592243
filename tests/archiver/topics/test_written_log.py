"""Waiting for a server's log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from archiver.errors import LogNotWritten
from archiver.topics.written_log import WAIT_SECONDS, await_written
from catalog.registry.intake_logs import IntakeLogRow

TOPIC: Any = SimpleNamespace(id=7, topic="sensors")
LOG = IntakeLogRow(
    wal_id="id",
    folder="host:/wal/sensors",
    epoch=1,
    drained=False,
    next_offsets={0: 3},
    reported_at=datetime(2026, 11, 29, tzinfo=UTC),
)


Serve = Callable[[IntakeLogRow], IntakeLogRow]


class FakeServer:
    def __init__(
        self, log: IntakeLogRow | None, serve: Callable[[IntakeLogRow], IntakeLogRow] = lambda log: log
    ) -> None:
        self.log = log
        self.intake = self
        self.now = 0.0
        self._serve = serve

    def of_topics(self, _rows: Any) -> dict[int, IntakeLogRow]:
        return {} if self.log is None else {TOPIC.id: self.log}

    def request(self, _topic: Any) -> int:
        assert self.log is not None
        self.log = replace(self.log, requested=self.log.requested + 1)
        return self.log.requested

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        assert self.log is not None
        self.log = self._serve(self.log)


def wait(server: FakeServer) -> None:
    registry: Any = server
    await_written(registry, TOPIC, purpose="Nothing was erased.", clock=server)


def test_a_server_fulfils_the_request() -> None:
    server = FakeServer(LOG, lambda log: replace(log, written=log.requested))
    wait(server)
    assert server.log == replace(LOG, requested=1, written=1)


def test_an_earlier_request_is_not_enough() -> None:
    server = FakeServer(replace(LOG, requested=4, written=4))
    with pytest.raises(LogNotWritten, match=r"has not written them within 600 seconds. Nothing was erased"):
        wait(server)
    assert server.now >= WAIT_SECONDS


def test_a_drained_log_needs_no_server() -> None:
    server = FakeServer(replace(LOG, drained=True, silent_seconds=1e9))
    wait(server)
    assert server.log is not None
    assert server.log.requested == 0
    wait(FakeServer(None))


def test_a_server_that_stops_in_order_ends_the_wait() -> None:
    wait(FakeServer(LOG, lambda log: replace(log, drained=True)))


def test_a_log_without_its_server_is_refused_at_once() -> None:
    server = FakeServer(replace(LOG, silent_seconds=61.0))
    with pytest.raises(LogNotWritten, match=r"has not reported for 61 seconds. Nothing was erased") as caught:
        wait(server)
    assert caught.value.context["log"] == "host:/wal/sensors"
    assert server.now == 0


def test_a_log_that_is_being_given_up_is_refused() -> None:
    server = FakeServer(replace(LOG, abandoned=frozenset({LOG.wal_id})))
    with pytest.raises(LogNotWritten, match=r"is being given up. Nothing was erased. Run `archiver abandon` again"):
        wait(server)
