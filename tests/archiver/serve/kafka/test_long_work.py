"""Waiting requests block no long answers."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from kio.schema.errors import ErrorCode

from tests.support.archive.archived_batches import archived
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import OffsetsInMemory, ServedLake, Wire, framed, request, waiting_fetch
from tests.support.timing.eventually import eventually

PARTITIONS = 40


def lake(folder: Path) -> Any:
    return archived(folder / "lake", build([Record(value=b"x")] * 10), end=10)


def begins() -> dict[int, int]:
    return dict.fromkeys(range(PARTITIONS), 0)


def make_slow(endpoint: ServedLake) -> None:
    ticks = count(1)
    endpoint.server.loop_time.clock = lambda: next(ticks) * 0.005


def many(message: Any) -> Any:
    (topic,) = message.topics
    (partition,) = topic.partitions
    name = "partition" if hasattr(partition, "partition") else "partition_index"
    partitions = tuple(replace(partition, **{name: number}) for number in range(PARTITIONS))
    return replace(message, topics=(replace(topic, partitions=partitions),))


def waiting_fetches() -> Any:
    fetch = many(waiting_fetch())
    (topic,) = fetch.topics
    partitions = tuple(
        replace(partition, fetch_offset=10 if partition.partition == 0 else 0) for partition in topic.partitions
    )
    return replace(fetch, topics=(replace(topic, partitions=partitions),))


def earliest() -> Any:
    return many(request(2, 5, replica_id=-1, name="orders", isolation_level=0, timestamp=-2, current_leader_epoch=-1))


def commit(group_id: str) -> Any:
    return many(
        request(
            8,
            7,
            group_id=group_id,
            name="orders",
            committed_offset=1,
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
        )
    )


def long_work_begins(endpoint: ServedLake) -> list[str]:
    begun: list[str] = []
    real = endpoint.server.loop_time.long_work.acquire

    async def noted() -> bool:
        begun.append("long")
        return await real()

    endpoint.server.loop_time.long_work.acquire = noted  # type: ignore[method-assign]
    return begun


def test_a_fetch_that_waits_for_records_holds_up_no_long_answer(tmp_path: Path) -> None:
    with ServedLake(lake(tmp_path), begins=begins) as endpoint, Wire(endpoint.port) as first:
        make_slow(endpoint)
        begun = long_work_begins(endpoint)
        first.send(framed(waiting_fetches(), 1))
        eventually(lambda: bool(begun))
        with Wire(endpoint.port) as second:
            answer = second.ask(earliest())
        assert {partition.error_code for partition in answer.topics[0].partitions} == {ErrorCode.none}
        assert len(begun) >= 2, "the fetch also looks at its partitions again in turns"


def test_commit_waiting_for_registry_blocks_no_long_answer(tmp_path: Path) -> None:
    class Slow(OffsetsInMemory):
        gate = threading.Event()
        came = threading.Event()

        def commit(self, group_id: str, offsets: Any, budget: Any = None, **claim: Any) -> None:
            self.came.set()
            assert self.gate.wait(20)
            super().commit(group_id, offsets, budget, **claim)

    slow = Slow()
    with ServedLake(lake(tmp_path), begins=begins, offsets=slow) as endpoint, Wire(endpoint.port) as first:
        make_slow(endpoint)
        begun = long_work_begins(endpoint)
        first.send(framed(commit("g"), 1))
        assert slow.came.wait(10)
        before = len(begun)
        assert before > 0
        with Wire(endpoint.port) as second:
            answer = second.ask(earliest())
        assert len(answer.topics[0].partitions) == PARTITIONS
        assert len(begun) > before
        slow.gate.set()
        first.receive()
