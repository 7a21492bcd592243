"""An archived topic of numbered records."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.archive.job_runs import archive_once
from tests.support.servers.stack import Stack

MILLION = 1_000_000


class Scene:
    def __init__(
        self, stack: Stack, *, partitions: int, records: int, size: int, serve: Mapping[str, Any], seed: int = 1
    ) -> None:
        self._stack = stack
        self._noise = random.Random(seed).randbytes(MILLION)
        self._size = size
        self.topic = stack.topic(partitions)
        self.ends = dict.fromkeys(range(partitions), 0)
        self.config: Path = stack.config({self.topic: {}}, serve=serve)
        self.grow(records)

    def grow(self, records: int) -> None:
        partitions = len(self.ends)
        messages = (
            {"value": self._value(number, offset), "partition": number}
            for offset in range(self.ends[0], self.ends[0] + records // partitions)
            for number in range(partitions)
        )
        self._stack.produce(self.topic, *messages, enable_idempotence=True)
        archive_once(self.config)
        for end in self.ends:
            self.ends[end] += records // partitions

    def _value(self, partition: int, offset: int) -> bytes:
        head = b"%d-%d " % (partition, offset)
        start = (offset * 7919 + partition * 104_729) % (MILLION - self._size)
        return head + self._noise[start : start + self._size - len(head)]
