"""Consumers that resume at a copied offset with a leader epoch."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from confluent_kafka import Consumer, TopicPartition

from tests.support.archive.archived_batches import archive_more, archived
from tests.support.archive.lake import Lake
from tests.support.clients.programs import ProgramClient
from tests.support.kafka.record_batches import Record, build
from tests.support.servers.served_lake import ServedLake
from tests.support.timing.eventually import eventually

ORDERS = "orders"
OLD_END, END = 100, 200
"""The ends of the first leader epoch and of the archive. The second epoch may continue."""
SECONDS = 60.0


class Resuming(Protocol):
    """Commits an offset and epoch for partition 0, and resumes."""

    def __call__(
        self, address: str, group: str, offset: int, *, epoch: int, count: int, seconds: float, reset: str
    ) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class JavaResuming:
    client: ProgramClient

    def __call__(
        self, address: str, group: str, offset: int, *, epoch: int, count: int, seconds: float, reset: str
    ) -> list[int]:
        events = self.client._told(
            "resume", address, ORDERS, group, *map(str, (offset, epoch, count, round(seconds * 1000))), reset
        )
        return [
            number
            for value in events
            for number in ([-1, value["truncated"]] if "truncated" in value else [value["offset"]])
        ]


def librdkafka(
    address: str, group: str, offset: int, *, epoch: int, count: int, seconds: float, reset: str
) -> list[int]:
    resets = {"none": "error"}
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": resets.get(reset, reset),
            "enable.auto.commit": False,
        }
    )
    seen: list[int] = []
    try:
        consumer.commit(offsets=[TopicPartition(ORDERS, 0, offset, leader_epoch=epoch)], asynchronous=False)
        consumer.assign([TopicPartition(ORDERS, 0)])
        until = time.monotonic() + seconds
        while len(seen) < count and time.monotonic() < until:
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is not None and "truncation" in error.str():
                return [-1, OLD_END]
            if error is None:
                seen.append(message.offset())
    finally:
        consumer.close()
    return seen


def two_epochs(folder: Path) -> Lake:
    batches = [
        build([Record(value=b"x")] * 10, base_offset=at, leader_epoch=0 if at < OLD_END else 1)
        for at in range(0, END, 10)
    ]
    lake = archived(folder / "lake", b"".join(batches), end=END, files=2)
    lake.set(**{"archiver.offsets": f'{{"0":[{END},1]}}'})
    return lake


def starts_at_once_inside_the_archive(resume: Resuming, folder: Path) -> None:
    with ServedLake(two_epochs(folder)) as endpoint:
        for epoch in (1, 2):
            result = resume(_at(endpoint), f"inside-{epoch}", 150, epoch=epoch, count=50, seconds=SECONDS, reset="none")
            assert result == list(range(150, END))


def waits_beyond_the_end_and_repeats_nothing(resume: Resuming, folder: Path, epoch: int) -> None:
    lake = two_epochs(folder)
    ahead, middle, end = END + 20, END + 30, END + 50
    log = [build([Record(value=b"y")] * 10, base_offset=at, leader_epoch=epoch) for at in range(END, end, 10)]
    with ServedLake(lake, interval=0.2) as endpoint, ThreadPoolExecutor(1) as pool:
        reading = pool.submit(
            resume, _at(endpoint), "ahead", ahead, epoch=epoch, count=end - ahead, seconds=SECONDS, reset="earliest"
        )

        eventually(lambda: reading.done() or endpoint.topics.open[0].was_ahead(0, ahead))
        archive_more(lake, b"".join(log[:3]), start=END, end=middle)
        lake.set(**{"archiver.offsets": f'{{"0":[{middle},{epoch}]}}'})
        archive_more(lake, b"".join(log[3:]), start=middle, end=end)
        assert reading.result(2 * SECONDS) == list(range(ahead, end))


def is_told_of_an_older_epoch_that_ended(resume: Resuming, folder: Path) -> None:
    with ServedLake(two_epochs(folder)) as endpoint:
        assert resume(_at(endpoint), "truncated", 150, epoch=0, count=1, seconds=SECONDS, reset="none") == [-1, OLD_END]


def _at(endpoint: ServedLake) -> str:
    return f"127.0.0.1:{endpoint.port}"
