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
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.paused: set[str] = set()
        self.journals: dict[str, Journal] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait(LEAVE_S)

    def begin_at_zero(self) -> None:
        """Commit offset 0 everywhere, so that no member looks up the start of the log.

        librdkafka may use such an answer after the partition went and came back.
        """
        admin = AdminClient({"bootstrap.servers": self._options["bootstrap"], "log_level": 0})
        places = [TopicPartition(self._options["topic"], partition, 0) for partition in sorted(self._partitions)]
        asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(self.name, places)])
        answer = asked[self.name].result(LEAVE_S)
        assert all(partition.error is None for partition in answer.topic_partitions)

    @property
    def members(self) -> list[str]:
        return sorted(self.running)

    def join(self) -> str:
        name = f"member-{len(self.journals):04d}"
        log = self._folder / f"{name}.jsonl"
        self.journals[name] = Journal(log)
        given = json.dumps({**self._options, "log": str(log)})
        with (self._folder / f"{name}.err").open("wb") as errors:
            self.running[name] = subprocess.Popen([sys.executable, str(MEMBER), given], stderr=errors)
        return name

    def leave(self, name: str) -> None:
        self.running[name].terminate()
        self._end(name)

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self._end(name)

    def pause(self, name: str) -> None:
        self.paused.add(name)
        self._signal(name, signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        self._signal(name, signal.SIGCONT)
        self.paused.discard(name)

    def drain(self) -> None:
        (self._folder / "drain").touch()

    def view(self) -> Mapping[str, Journal]:
        journals = {name: self.journals[name] for name in self.running if name not in self.paused}
        for journal in journals.values():
            journal.read_on()
        return journals

    def all_journals(self) -> Mapping[str, Journal]:
        for journal in self.journals.values():
            journal.read_on()
        return self.journals

    def is_settled(self) -> bool:
        view = self.view()
        assigned = [partition for journal in view.values() for partition in journal.has]
        if len(assigned) != len(self._partitions) or set(assigned) != self._partitions:
            return False
        return len(view) > len(assigned) or all(journal.has for journal in view.values())

    def shares(self) -> dict[str, list[int]]:
        return {name: sorted(journal.has) for name, journal in self.view().items()}

    def settles(self, seconds: float) -> float | None:
        began = time.monotonic()
        return time.monotonic() - began if comes_true(self.is_settled, seconds, every=LOOK_S) else None

    def gets_records(self, ends: Mapping[int, int], seconds: float) -> list[str]:
        since = time.monotonic_ns()

        def waiting() -> list[str]:
            reached = self.reached()
            return [
                name
                for name, journal in self.view().items()
                if journal.last_got <= since
                and any(reached.get(partition, -1) + 1 < ends[partition] for partition in journal.has)
            ]

        return [] if comes_true(lambda: not waiting(), seconds, every=LOOK_S) else waiting()

    def reached(self) -> dict[int, int]:
        highest: dict[int, int] = {}
        for journal in self.all_journals().values():
            for partition, offset in journal.reached.items():
                highest[partition] = max(offset, highest.get(partition, -1))
        return highest

    @property
    def total(self) -> int:
        return sum(at + 1 for at in self.reached().values())

    def has_reached(self, ends: Mapping[int, int], seconds: float) -> bool:
        return comes_true(
            lambda: {partition: at + 1 for partition, at in self.reached().items()} == ends, seconds, every=4 * LOOK_S
        )

    def judged(self, ends: Mapping[int, int]) -> Verdict:
        for name in self.running:
            self._signal(name, signal.SIGCONT)
            self.running[name].terminate()
        for name in list(self.running):
            self._end(name)
        verdict = judge([journal.path for journal in self.journals.values()], ends)
        verdict.wrong += [
            f"{path.stem}: {path.read_text(errors='replace')[-300:]}"
            for path in self._folder.glob("*.err")
            if path.stat().st_size
        ]
        return verdict

    def _end(self, name: str) -> None:
        process = self.running[name]
        process.wait(LEAVE_S)
        self.running.pop(name)

    def _signal(self, name: str, number: int) -> None:
        os.kill(self.running[name].pid, number)
