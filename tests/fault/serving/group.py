"""A group of member processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.fault.serving.journal import Journal
from tests.fault.serving.judge import Verdict, judge
from tests.support.timing.eventually import comes_true

MEMBER = Path(__file__).with_name("member.py")
LOOK_S = 0.05
LEAVE_S = 30.0


class Group:
    def __init__(
        self, folder: Path, *, bootstrap: str, name: str, topic: str, protocol: str, per_second: float, partitions: int
    ) -> None:
        folder.mkdir(parents=True)
        self.name = name
        self._folder = folder
        self._options: dict[str, Any] = {
            "bootstrap": bootstrap,
            "group": name,
            "topic": topic,
            "protocol": protocol,
            "per_second": per_second,
            "drain": str(folder / "drain"),
        }
        self._partitions = frozenset(range(partitions))
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._paused: set[str] = set()
        self._journals: dict[str, Journal] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._running.values():
            each.kill()
        for each in self._running.values():
            each.wait(LEAVE_S)

    def begin_at_zero(self) -> None:
        """Commit offset 0 everywhere, so that no member looks up the start of the log.

        librdkafka may use such an answer after the partition went and came back.
        """
        admin = AdminClient({"bootstrap.servers": self._options["bootstrap"], "log_level": 0})
        places = [TopicPartition(self._options["topic"], partition, 0) for partition in sorted(self._partitions)]
        asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(self.name, places)])
        told = asked[self.name].result(LEAVE_S)
        assert all(partition.error is None for partition in told.topic_partitions)

    @property
    def members(self) -> list[str]:
        return sorted(self._running)

    def join(self) -> str:
        name = f"member-{len(self._journals):04d}"
        log = self._folder / f"{name}.jsonl"
        self._journals[name] = Journal(log)
        given = json.dumps({**self._options, "log": str(log)})
        with (self._folder / f"{name}.err").open("wb") as errors:
            self._running[name] = subprocess.Popen([sys.executable, str(MEMBER), given], stderr=errors)
        return name

    def leave(self, name: str) -> None:
        self._running[name].terminate()
        self._end(name)

    def kill(self, name: str) -> None:
        self._running[name].kill()
        self._end(name)

    def pause(self, name: str) -> None:
        self._paused.add(name)
        self._signal(name, signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        self._signal(name, signal.SIGCONT)
        self._paused.discard(name)

    def drain(self) -> None:
        (self._folder / "drain").touch()

    def view(self) -> Mapping[str, Journal]:
        found = {name: self._journals[name] for name in self._running if name not in self._paused}
        for each in found.values():
            each.read_on()
        return found

    def all_journals(self) -> Mapping[str, Journal]:
        for journal in self._journals.values():
            journal.read_on()
        return self._journals

    def is_settled(self) -> bool:
        view = self.view()
        held = [partition for each in view.values() for partition in each.has]
        if len(held) != len(self._partitions) or set(held) != self._partitions:
            return False
        return len(view) > len(held) or all(each.has for each in view.values())

    def shares(self) -> dict[str, list[int]]:
        return {name: sorted(each.has) for name, each in self.view().items()}

    def settles(self, seconds: float) -> float | None:
        began = time.monotonic()
        return time.monotonic() - began if comes_true(self.is_settled, seconds, every=LOOK_S) else None

    def gets_records(self, ends: Mapping[int, int], seconds: float) -> list[str]:
        since = time.monotonic_ns()

        def waiting() -> list[str]:
            reached = self.reached()
            return [
                name
                for name, each in self.view().items()
                if each.last_got <= since and any(reached.get(one, -1) + 1 < ends[one] for one in each.has)
            ]

        return [] if comes_true(lambda: not waiting(), seconds, every=LOOK_S) else waiting()

    def reached(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for journal in self.all_journals().values():
            for partition, offset in journal.reached.items():
                found[partition] = max(offset, found.get(partition, -1))
        return found

    @property
    def total(self) -> int:
        return sum(at + 1 for at in self.reached().values())

    def has_reached(self, ends: Mapping[int, int], seconds: float) -> bool:
        return comes_true(
            lambda: {each: at + 1 for each, at in self.reached().items()} == ends, seconds, every=4 * LOOK_S
        )

    def judged(self, ends: Mapping[int, int]) -> Verdict:
        for each in self._running:
            self._signal(each, signal.SIGCONT)
            self._running[each].terminate()
        for each in list(self._running):
            self._end(each)
        found = judge([journal.path for journal in self._journals.values()], ends)
        found.wrong += [
            f"{path.stem}: {path.read_text(errors='replace')[-300:]}"
            for path in self._folder.glob("*.err")
            if path.stat().st_size
        ]
        return found

    def _end(self, name: str) -> None:
        process = self._running[name]
        process.wait(LEAVE_S)
        self._running.pop(name)

    def _signal(self, name: str, number: int) -> None:
        os.kill(self._running[name].pid, number)
