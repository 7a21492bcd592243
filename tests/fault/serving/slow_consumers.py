"""Slow consumers and idle connections: memory stays flat, and fast consumers keep their pace.

Slow clients also take processor time, so the broker plays the same for comparison.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil
from confluent_kafka import Consumer, TopicPartition

from tests.fault.serving.scene import Scene
from tests.fault.serving.slow_readers import SlowReaders
from tests.support.servers.serve_nodes import Nodes
from tests.support.servers.stack import Stack

PARTITIONS = 8
RECORDS = 400_000
RECORD_BYTES = 400
MIB = 1 << 20
SERVE = {
    "refresh": "1s",
    "cache_size": "64MiB",
    "response_memory": "128MiB",
    "max_connections": 3000,
    "max_connections_per_address": 3000,
    "idle_timeout": "2h",
}
FAST = 2
POLLED_SLOWLY = 0.25
"""The share of librdkafka's among slow consumers: a record a second each. The rest take bytes slowly."""
BYTES_PER_SECOND = 32 << 10
ALONE_S = 20.0
BROKER_MINUTES = 3.0
"""How long the same is played at the broker at most, to judge by what fast consumers keep there."""
WARM = 0.2
"""The part of the time after which memory has to be flat."""
MOST_GROWTH = 0.10
LEAST_SHARE = 0.6
SAMPLED_EVERY_S = 0.5


class Memory:
    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.samples: list[tuple[float, int]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def between(self, first: float, last: float) -> list[int]:
        return [size for at, size in self.samples if first <= at <= last]

    def _sample(self) -> None:
        while not self._over.wait(SAMPLED_EVERY_S):
            self.samples.append((time.monotonic(), self._process.memory_info().rss))


class Pollers:
    def __init__(self, address: str, topic: str, ends: Mapping[int, int], count: int) -> None:
        self._topic, self._ends = topic, ends
        options = {"bootstrap.servers": address, "group.id": "slow", "enable.auto.commit": False, "log_level": 0}
        self._consumers = [
            Consumer({**options, "auto.offset.reset": "error", "queued.max.messages.kbytes": 512}) for _ in range(count)
        ]
        self.taken = 0
        self.wrong: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def __enter__(self) -> Self:
        for number, consumer in enumerate(self._consumers):
            partition = number % len(self._ends)
            consumer.assign(
                [TopicPartition(self._topic, partition, self._ends[partition] * number // (2 * len(self._consumers)))]
            )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        for consumer in self._consumers:
            consumer.close()

    def _poll(self) -> None:
        following: dict[int, int] = {}
        while not self._over.wait(1.0):
            for number, consumer in enumerate(self._consumers):
                message = consumer.poll(0.0)
                if message is None:
                    continue
                if message.error() is not None:
                    self.wrong.append(f"poller {number}: {message.error()}")
                    continue
                self.taken += 1
                if following.setdefault(number, message.offset()) != message.offset():
                    self.wrong.append(f"poller {number}: {message.offset()} instead of {following[number]}")
                following[number] = message.offset() + 1


@contextmanager
def fast_readers(bootstrap: str, scene: Scene, folder: Path) -> Iterator[list[Path]]:
    program = Path(__file__).with_name("fast_reader.py")
    logs, running = [], []
    try:
        for number in range(FAST):
            ends = {item: end for item, end in scene.ends.items() if item % FAST == number}
            logs.append(folder / f"fast-{number}.log")
            given = {"bootstrap": bootstrap, "topic": scene.topic, "ends": ends, "log": str(logs[-1])}
            running.append(subprocess.Popen([sys.executable, str(program), json.dumps(given)]))
        yield logs
        for number, item in enumerate(running):
            if item.poll() is not None:
                raise RuntimeError(f"fast consumer {number} ended by itself")
    finally:
        for item in running:
            item.kill()
            item.wait(20)


def rate(logs: list[Path], first: float, last: float) -> float:
    sums = 0.0
    for log in logs:
        notes = [tuple(map(int, line.split())) for line in log.read_text().splitlines() if line.count(" ") == 1]
        within = [(at, count) for at, count in notes if first <= at / 1e9 <= last]
        (began, before), (ended, after) = within[0], within[-1]
        sums += (after - before) / (ended - began) * 1e9
    return sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    before: float
    began: float
    ended: float
    alone: float
    beside: float
    after: float
    alive: int
    readers: SlowReaders
    pollers: Pollers

    @property
    def share(self) -> float:
        return self.beside / statistics.mean((self.alone, self.after))

    @property
    def summary(self) -> dict[str, Any]:
        return {
            "slow_bytes_taken": self.readers.taken_bytes,
            "slow_answers": self.readers.answers,
            "records_polled_slowly": self.pollers.taken,
            "fast_records_per_second": {
                "before": round(self.alone),
                "beside": round(self.beside),
                "after": round(self.after),
            },
            "fast_share": round(self.share, 2),
        }

    def wrong(self, idle: int) -> list[str]:
        lost = [f"{idle - self.alive} of {idle} idle connections were gone"] if self.alive != idle else []
        return [*self.readers.wrong, *self.pollers.wrong, *lost]


def played(
    bootstrap: str,
    scene: Scene,
    folder: Path,
    *,
    minutes: float,
    slow: int,
    idle: int,
    say: Callable[[str], None],
    may_be_cut: bool = False,
) -> Played:
    polled = round(slow * POLLED_SLOWLY)
    folder.mkdir(exist_ok=True)
    with fast_readers(bootstrap, scene, folder) as logs:
        time.sleep(5.0)
        before = time.monotonic()
        time.sleep(ALONE_S)
        alone = rate(logs, before, time.monotonic())
        say(f"alone: {alone:,.0f} records/s")
        with (
            SlowReaders(
                bootstrap,
                scene.topic,
                scene.ends,
                slow=slow - polled,
                idle=idle,
                bytes_per_second=BYTES_PER_SECOND,
                may_be_cut=may_be_cut,
            ) as readers,
            Pollers(bootstrap, scene.topic, scene.ends, polled) as pollers,
        ):
            began = time.monotonic()
            while time.monotonic() < began + 60 * minutes:
                time.sleep(min(20.0, 60 * minutes))
                say(f"{readers.answers} answers to slow consumers")
            ended = time.monotonic()
            alive = readers.alive()
        beside = rate(logs, began, ended)
        time.sleep(5.0)
        again = time.monotonic()
        time.sleep(ALONE_S)
        after = rate(logs, again, time.monotonic())
    return Played(
        before=before,
        began=began,
        ended=ended,
        alone=alone,
        beside=beside,
        after=after,
        alive=alive,
        readers=readers,
        pollers=pollers,
    )


def slow_consumers(
    stack: Stack, folder: Path, *, minutes: float, slow: int, idle: int, say: Callable[[str], None]
) -> dict[str, Any]:
    scene = Scene(stack, partitions=PARTITIONS, records=RECORDS, size=RECORD_BYTES, serve=SERVE)
    with Nodes(scene.config, 1, log=folder / "server.log") as nodes, Memory(nodes.pid(0)) as memory:
        ours = played(nodes.bootstrap, scene, folder / "ours", minutes=minutes, slow=slow, idle=idle, say=say)
    at_broker = min(minutes, BROKER_MINUTES)
    broker = played(
        stack.bootstrap_servers,
        scene,
        folder / "broker",
        minutes=at_broker,
        slow=slow,
        idle=idle,
        say=say,
        may_be_cut=True,
    )
    warm = ours.began + WARM * (ours.ended - ours.began)
    part = (ours.ended - warm) / 4
    first, last = memory.between(warm, warm + part), memory.between(ours.ended - part, ours.ended)
    growth = statistics.median(last) / statistics.median(first) - 1
    wrong = ours.wrong(idle)
    if growth > MOST_GROWTH:
        wrong.append(f"memory grew by {growth:.0%}")
    if ours.share < LEAST_SHARE:
        wrong.append(f"fast consumers came to {ours.share:.0%}, at the broker to {broker.share:.0%}")
    return {
        "minutes": minutes,
        "slow_consumers": slow,
        "of_librdkafka": round(slow * POLLED_SLOWLY),
        "idle_connections": idle,
        "memory_mib": {
            "alone": round(statistics.median(memory.between(ours.before, ours.began)) / MIB),
            "warm": round(statistics.median(first) / MIB),
            "end": round(statistics.median(last) / MIB),
            "most": round(max(size for _, size in memory.samples) / MIB),
        },
        "growth": round(growth, 3),
        **ours.summary,
        "at_the_broker": {"minutes": at_broker, **broker.summary, "troubles": broker.wrong(idle)[:20]},
        "wrong": len(wrong),
        "troubles": wrong[:20],
    }
