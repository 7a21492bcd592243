"""Offsets by time and name equal the broker's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from archiver.config import load_config
from archiver.serve.kafka.apis import APIS
from tests.support.archive.job_runs import archive_once
from tests.support.servers.endpoint_here import serving_here
from tests.support.servers.served_lake import Wire, request
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

PARTITIONS = 3
START = 1_700_000_000_000
TIMES = (START, START + 6, START + 9, START + 10)
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING, UNKNOWN = range(-1, -8, -1)
PLACES = (LATEST, EARLIEST, EARLIEST_LOCAL)
NO_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    topic: str
    broker: str
    archive: str


@pytest.fixture(scope="module")
def both(stack: Stack) -> Iterator[Both]:
    topic = stack.topic(PARTITIONS)
    times = (5, 9, 9, 2)
    stack.produce(topic, *({"value": b"x", "partition": 0, "timestamp": START + time} for time in times))
    stack.produce(topic, {"value": b"x", "partition": 2, "timestamp": START})
    config = stack.config({topic: {}})
    archive_once(config)
    with serving_here(load_config(config, {"ARCHIVER__SERVE__LISTEN": "127.0.0.1:0"})) as address:
        yield Both(topic=topic, broker=stack.bootstrap_servers.split(",")[0], archive=address)


def told(address: str, topic: str, version: int, time: int, partition: int) -> tuple[Any, ...]:
    with Wire(int(address.rpartition(":")[2])) as wire:
        asked = request(
            2, version, replica_id=-1, name=topic, timestamp=time, partition_index=partition, current_leader_epoch=-1
        )
        (answer,) = wire.ask(asked).topics[0].partitions
        return answer.error_code, answer.offset, answer.timestamp, getattr(answer, "leader_epoch", NO_EPOCH)


@pytest.mark.parametrize("version", range(APIS[2].least, APIS[2].most + 1))
def test_times_and_names_mean_what_they_mean_in_kafka(both: Both, version: int) -> None:
    """An archive doesn't know the epoch of an offset without a record."""
    wrong = []
    for time in (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING, UNKNOWN, *TIMES):
        for partition in range(PARTITIONS):
            ours, theirs = (told(wire, both.topic, version, time, partition) for wire in (both.archive, both.broker))
            if ours != theirs and (time not in PLACES or ours != (*theirs[:-1], NO_EPOCH)):
                wrong.append((time, partition, ours, theirs))
    assert wrong == []
