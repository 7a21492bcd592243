"""A member process that notes records before it commits them.

Usage: member.py OPTIONS, a JSON object with `bootstrap`, `group`, `topic`, `protocol`, `per_second`, `log`, `drain`.
Once the file `drain` exists it reads at full speed; SIGTERM makes it leave. Lines of the log are JSON lists: event,
time in ns, and partitions (`assigned`, `revoked`, `lost`), a partition with first and last offset (`got`), or offsets
(`committing`, `committed`, `refused`).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

BURSTS_PER_SECOND = 4
MOST_AT_ONCE = 500
QUIET_S = 0.25
PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {"partition.assignment.strategy": "range"},
    "roundrobin": {"partition.assignment.strategy": "roundrobin"},
    "cooperative-sticky": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
    "consumer, range": {"group.protocol": "consumer", "group.remote.assignor": "range"},
}
SESSION_MS = 3_000
"""How long members of classic groups may be silent. In the other protocol the server decides."""


class Member:
    def __init__(self, given: dict[str, Any]) -> None:
        self._topic = given["topic"]
        self._burst = max(1, int(given["per_second"] / BURSTS_PER_SECOND))
        self._drain = Path(given["drain"])
        self._is_over = False
        self._got: dict[int, list[list[int]]] = {}
        self._log = os.open(given["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        options = dict(PROTOCOLS[given["protocol"]])
        if "group.protocol" not in options:
            options |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 500}
        self._consumer = Consumer(
            {
                "bootstrap.servers": given["bootstrap"],
                "group.id": given["group"],
                "client.id": Path(given["log"]).stem,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "max.partition.fetch.bytes": 16_384,
                "queued.min.messages": 200,
                "fetch.queue.backoff.ms": 20,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
                **options,
            }
        )
        signal.signal(signal.SIGTERM, self._end)

    def run(self) -> None:
        self._consumer.subscribe([self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        self._note("began")
        while not self._is_over:
            until = time.monotonic() + 1 / BURSTS_PER_SECOND
            is_draining = self._drain.exists()
            self._take_burst(MOST_AT_ONCE if is_draining else self._burst)
            self._commit()
            if not is_draining:
                time.sleep(max(0.0, until - time.monotonic()))
        self._consumer.close()
        self._note("ended")

    def _take_burst(self, most: int) -> None:
        for _ in range(most):
            message = self._consumer.poll(0.0) or self._consumer.poll(QUIET_S)
            if message is None or self._is_over:
                return
            self._take(message)

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            self._note("error", error.name())
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        if value is None or not value.startswith(b"%d-%d " % (partition, offset)):
            self._note("wrong", partition, offset, None if value is None else value[:40].decode(errors="replace"))
        ranges = self._got.setdefault(partition, [])
        if ranges and ranges[-1][1] + 1 == offset:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])

    def _commit(self) -> None:
        following = self._flush()
        if not following:
            return
        self._note("committing", following)
        try:
            offsets = [TopicPartition(self._topic, entry, offset) for entry, offset in following.items()]
            answer = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            self._note("refused", following, error.args[0].name())
            return
        done = {entry.partition: entry.offset for entry in answer if entry.error is None}
        self._note("committed", done)
        if len(done) < len(following):
            names = sorted({entry.error.name() for entry in answer if entry.error is not None})
            self._note("refused", {entry: at for entry, at in following.items() if entry not in done}, ",".join(names))

    def _flush(self) -> dict[int, int]:
        following = {}
        for partition, ranges in self._got.items():
            for first, last in ranges:
                self._note("got", partition, first, last)
            following[partition] = ranges[-1][1] + 1
        self._got.clear()
        return following

    def _assigned(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._note("assigned", [item.partition for item in places])

    def _revoked(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._commit()
        self._note("revoked", [item.partition for item in places])

    def _lost(self, _: Consumer, places: list[TopicPartition]) -> None:
        self._flush()
        self._note("lost", [item.partition for item in places])

    def _end(self, *_: object) -> None:
        self._is_over = True

    def _note(self, what: str, *more: Any) -> None:
        os.write(self._log, json.dumps([what, time.monotonic_ns(), *more]).encode() + b"\n")


if __name__ == "__main__":
    Member(json.loads(sys.argv[1])).run()
