"""Spread answers, so that clients don't pause."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest

from archiver.serve.kafka import pauses
from tests.support.archive.archived_batches import archived
from tests.support.archive.lake import Lake
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import ServedLake, Wire, request

ORDERS = "orders"
COUNT = 100
BATCHES = [build([Record(value=b"x" * 200)] * 5, base_offset=at, leader_epoch=0) for at in range(0, 5 * COUNT, 5)]
SIZE = len(BATCHES[0])


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr(pauses, "_LEAST_RECORDS_A_SECOND", 1)
    return archived(tmp_path / "lake", b"".join(BATCHES), end=5 * COUNT)


def answers_in(wire: Wire, *offsets: int) -> float:
    began = time.monotonic()
    for offset in offsets:
        answer = wire.ask(
            request(
                1,
                12,
                topic=ORDERS,
                partition=0,
                fetch_offset=offset,
                max_bytes=10 * SIZE,
                partition_max_bytes=10 * SIZE,
                min_bytes=1,
                max_wait=timedelta(seconds=1),
                session_id=0,
                session_epoch=-1,
                forgotten_topics_data=(),
            )
        )
        assert len(answer.responses[0].partitions[0].records) == 10 * SIZE
    return time.monotonic() - began


def told(wire: Wire, name: str, version: str) -> None:
    wire.ask(request(18, 3, client_software_name=name, client_software_version=version))


def after_a_pause(wire: Wire) -> float:
    answers_in(wire, 0)
    time.sleep(1.0)
    return answers_in(wire, 50, 100)


@pytest.mark.parametrize(
    ("name", "version", "spreads", "waits"),
    [
        ("confluent-kafka-python", "2.16.1-rdkafka-2.16.0", True, True),
        ("librdkafka", "2.16.0", True, True),
        ("apache-kafka-java", "4.3.0", True, False),
        ("librdkafka", "2.16.0", False, False),
    ],
)
def test_answers_wait_for_clients_that_pause(
    lake: Lake, name: str, version: str, *, spreads: bool, waits: bool
) -> None:
    with ServedLake(lake, spreads_answers=spreads) as running, Wire(running.port) as wire:
        told(wire, name, version)
        took = after_a_pause(wire)
    assert (took >= 0.9 * pauses.MOST_WAIT) is waits


def test_one_client_waits_for_itself_only(lake: Lake) -> None:
    with ServedLake(lake) as running, Wire(running.port) as wire, Wire(running.port) as other_wire:
        for client in (wire, other_wire):
            told(client, "librdkafka", "2.16.0")
        assert after_a_pause(wire) >= 0.9 * pauses.MOST_WAIT
        assert answers_in(other_wire, 0, 50, 100, 150) < 0.9 * pauses.MOST_WAIT


def test_a_client_that_tells_no_software_does_not_wait(lake: Lake) -> None:
    with ServedLake(lake) as running, Wire(running.port) as wire:
        wire.ask(request(18, 2))
        assert after_a_pause(wire) < 0.9 * pauses.MOST_WAIT
