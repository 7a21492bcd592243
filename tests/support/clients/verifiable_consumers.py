"""Kafka's VerifiableConsumer, with the rules of Kafka's `verifiable_consumer.py`.

Members consume and commit only owned partitions, resume at the group's offset, commit no more than consumed, and
consume nothing before the committed offset. A suspended member may finish fetched records.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from archiver.local.java import find_java
from archiver.local.kafka import ARTIFACTS
from archiver.local.maven import jars
from archiver.local.releases import KAFKA
from tests.support.timing.eventually import comes_true

PROTOCOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "range": ("--assignment-strategy", "org.apache.kafka.clients.consumer.RangeAssignor"),
    "cooperative-sticky": ("--assignment-strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"),
    "consumer": ("--group-protocol", "CONSUMER"),
}
_EAGER: Final = "range"
SESSION_MS: Final = 6000
_LEAVE_S: Final = 30.0
_FINISHES_S: Final = 5.0
"""How long a member that was suspended may take until it hears what became of it."""


@dataclass(slots=True)
class Judge:
    protocol: str
    wrong: list[str] = field(default_factory=list)
    committed: dict[int, int] = field(default_factory=dict)
    """The highest committed offset of each partition."""
    consumed: defaultdict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """The first and last offset of all that was consumed of each partition."""
    refused: int = 0
    assignments: int = 0

    def lost(self) -> list[str]:
        result = []
        for partition, end in self.committed.items():
            at = 0
            for first, last in sorted(self.consumed[partition]):
                if first > at:
                    result.append(f"lost {at} to {first - 1} of {partition}")
                at = max(at, last + 1)
            if at < end:
                result.append(f"{partition} was committed up to {end}, and consumed up to {at}")
        return result

    def is_at(self, ends: Mapping[int, int]) -> bool:
        return self.committed == ends


@dataclass(slots=True)
class Seen:
    name: str
    judge: Judge
    assignment: set[int] = field(default_factory=set)
    position: dict[int, int] = field(default_factory=dict)
    count: int = 0
    excused_until: float = float("-inf")
    is_over: bool = False

    def take(self, event: Mapping[str, Any]) -> None:
        match event["name"]:
            case "partitions_assigned":
                self._assigned({item["partition"] for item in event["partitions"]})
            case "partitions_revoked":
                self._revoked({item["partition"] for item in event["partitions"]})
            case "records_consumed":
                for value in event["partitions"]:
                    self._consumed(value["partition"], value["minOffset"], value["maxOffset"])
                self.count += event["count"]
            case "offsets_committed":
                self._committed(event)
            case "shutdown_complete":
                self.is_over = True

    def _assigned(self, partitions: set[int]) -> None:
        self.judge.assignments += 1
        if self.judge.protocol == _EAGER:
            self.assignment.clear()
        self._demand(not partitions & self.assignment, f"assigned {partitions & self.assignment} again")
        self.assignment |= partitions
        self.excused_until = float("-inf")
        for partition in partitions:
            self.position.pop(partition, None)

    def _revoked(self, partitions: set[int]) -> None:
        self._demand(partitions <= self.assignment, f"had to give up {partitions - self.assignment} without having it")
        self.assignment -= partitions
        self.excused_until = float("-inf")
        for partition in partitions:
            self.position.pop(partition, None)

    def _consumed(self, partition: int, first: int, last: int) -> None:
        self._demand(partition in self.assignment, f"consumed {partition} at {first} without having it")
        at = self.position.get(partition, first)
        self._demand(at == first, f"consumed {partition} at {first} instead of {at}")
        least = self.judge.committed.get(partition, 0)
        if time.monotonic() > self.excused_until:
            self._demand(first >= least, f"consumed {partition} at {first}, though {least} was committed")
        self.position[partition] = last + 1
        self.judge.consumed[partition].append((first, last))

    def _committed(self, event: Mapping[str, Any]) -> None:
        if not event["success"]:
            self.judge.refused += 1
            return
        for value in event["offsets"]:
            partition, offset = value["partition"], value["offset"]
            self._demand(partition in self.assignment, f"committed {partition} without having it")
            at = self.position.get(partition, -1)
            self._demand(offset <= at, f"committed {offset} of {partition}, and had come to {at}")
            self.judge.committed[partition] = max(offset, self.judge.committed.get(partition, 0))

    def _demand(self, is_right: bool, what: str) -> None:
        if not is_right:
            self.judge.wrong.append(f"{self.name}: {what}")


class VerifiableConsumers:
    def __init__(self, folder: Path, *, bootstrap: str, topic: str, group: str, protocol: str, at_once: int) -> None:
        """`at_once` bounds records between commits."""
        self.judge = Judge(protocol)
        self._folder = folder
        java = find_java()
        position = jars(f"kafka-{KAFKA}", ARTIFACTS, java, lambda _: None)
        options = folder / "consumer.properties"
        options.write_text(f"max.poll.records={at_once}\nheartbeat.interval.ms=500\nreconnect.backoff.max.ms=500\n")
        if protocol == "consumer":
            options.write_text(f"max.poll.records={at_once}\nreconnect.backoff.max.ms=500\n")
        session = () if protocol == "consumer" else ("--session-timeout", str(SESSION_MS))
        self._command = [
            java.executable,
            *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx96m", "-cp", f"{position}/*"),
            "org.apache.kafka.tools.VerifiableConsumer",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group),
            *("--reset-policy", "earliest", "--command-config", str(options)),
            *(*session, *PROTOCOLS[protocol]),
        ]
        self._lock = threading.Lock()
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._seen: dict[str, Seen] = {}
        self._readers: list[threading.Thread] = []
        self._paused: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for item in self._running.values():
            item.kill()
        for item in self._running.values():
            item.wait(_LEAVE_S)
        for reader in self._readers:  # each ends with its process, and closes what it read from
            reader.join(_LEAVE_S)

    def join(self) -> str:
        name = f"consumer-{len(self._seen)}"
        with (self._folder / f"{name}.err").open("wb") as errors:
            process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=errors, text=True)
        self._running[name] = process
        self._seen[name] = Seen(name, self.judge)
        reader = threading.Thread(target=self._read, args=(process, self._seen[name]), daemon=True)
        self._readers.append(reader)
        reader.start()
        return name

    def leave(self, name: str) -> None:
        process = self._running.pop(name)
        process.terminate()
        process.wait(_LEAVE_S)

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait(_LEAVE_S)

    def pause(self, name: str) -> None:
        os.kill(self._running[name].pid, signal.SIGSTOP)
        self._paused.add(name)

    def go_on(self, name: str) -> None:
        with self._lock:
            self._seen[name].excused_until = time.monotonic() + _FINISHES_S
        self._paused.discard(name)
        os.kill(self._running[name].pid, signal.SIGCONT)

    def shares(self, partitions: int) -> bool:
        with self._lock:
            kept = [value for name in self._present() for value in self._seen[name].assignment]
            return sorted(kept) == list(range(partitions)) and all(
                self._seen[value].assignment for value in self._present()
            )

    def get_records(self, seconds: float) -> bool:
        with self._lock:
            before = {name: self._seen[name].count for name in self._present()}
        return comes_true(lambda: all(self._seen[name].count > count for name, count in before.items()), seconds)

    def has_read(self, ends: Mapping[int, int]) -> bool:
        with self._lock:
            return self.judge.is_at(ends)

    def view(self) -> str:
        with self._lock:
            events = [
                f"{name} {sorted(self._seen[name].assignment)} {self._seen[name].count}" for name in self._running
            ]
            return f"{'; '.join(events)}; suspended: {sorted(self._paused)}; committed: {self.judge.committed}"

    def _present(self) -> list[str]:
        return [value for value in self._running if value not in self._paused]

    def _read(self, process: subprocess.Popen[str], seen: Seen) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                if line.startswith("{") and line.endswith("\n"):  # a kill may cut the last one
                    with self._lock:
                        seen.take(json.loads(line))
