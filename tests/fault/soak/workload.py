"""Seeded random producers of odd records, with acknowledgements.

Plain, idempotent and transactional, with all codecs.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from tests.fault.soak.ledger import Ledger, Payload, Place
from tests.support.kafka.odd_records import CODECS, ODD_HEADERS, rdkafka

TIMEOUT_S = 60.0
WILD_TIMES = (1, 253_402_300_799_999, 253_402_300_800_000, (1 << 63) - 1, 946_684_800_000, 4_102_444_800_000)
_NOW = 1_767_225_600_000
_DAY = 86_400_000

ValueMaker = Callable[[Random], bytes | None]


def raw_value(noise: Random) -> bytes | None:
    kind = noise.random()
    if kind < 0.08:
        return None
    return noise.randbytes(noise.randrange(20_000, 120_000) if kind > 0.995 else noise.randrange(250))


def text_values(known: Callable[[], int]) -> ValueMaker:
    def make(noise: Random) -> bytes | None:
        kind = noise.random()
        if kind < 0.08:
            return None
        if kind < 0.18:
            return noise.randbytes(noise.randrange(30))
        numbers = [number for number in range(1, known() + 2) if noise.random() < 0.6]
        return b"".join(text_field(number, noise.randbytes(noise.randrange(1, 40)).hex()) for number in numbers)

    return make


def text_field(number: int, text: str) -> bytes:
    return bytes([number << 3 | 2, len(text.encode())]) + text.encode()


class Workload:
    """Close open transactions before expecting all records."""

    def __init__(self, bootstrap: str, topic: str, ledger: Ledger, value: ValueMaker, *, name: str = "") -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._ledger = ledger
        self._value = value
        self._name = name or "main"
        self._producers: dict[str, Producer] = {}
        self._open: tuple[Producer, dict[Place, Payload]] | None = None

    def produce(self, noise: Random, partitions: int, records: int) -> None:
        left = records
        while left > 0:
            count = noise.randrange(1, max(2, records // 3))
            match noise.choice(("plain", "plain", "idempotent", "transaction", "transaction", "single")):
                case "transaction":
                    self._transact(noise, partitions, count, ending=noise.choice(("commit", "abort", "commit")))
                case kind:
                    self._send(self._producer(kind, noise), noise, range(partitions), count, self._ledger.entry())
            left -= count

    def leave_open(self, noise: Random, partitions: int) -> None:
        """Nothing after the transaction's first record is stable."""
        if self._open is None:
            self._transact(noise, partitions, noise.randrange(1, 40), ending="open")

    def end_transaction(self, noise: Random) -> None:
        if self._open is not None:
            (producer, pending), self._open = self._open, None
            self._end(producer, pending, noise.choice(("commit", "abort")))

    def backlog(self, noise: Random, partition: int, records: int) -> None:
        self._send(
            self._producer("single", noise), noise, range(partition, partition + 1), records, self._ledger.entry()
        )

    def _transact(self, noise: Random, partitions: int, count: int, *, ending: str) -> None:
        producer = self._producer("transaction", noise)
        if self._open is not None and self._open[0] is producer:
            self.end_transaction(noise)
        pending: dict[Place, Payload] = {}
        try:
            producer.begin_transaction()
        except KafkaException:
            producer = self._anew("transaction", noise)
            producer.begin_transaction()
        self._send(producer, noise, range(partitions), count, self._ledger.entry(pending))
        if ending == "open":
            self._open = producer, pending
        else:
            self._end(producer, pending, ending)

    def _end(self, producer: Producer, pending: dict[Place, Payload], ending: str) -> None:
        try:
            if ending == "commit":
                producer.commit_transaction(TIMEOUT_S)
            else:
                producer.abort_transaction(TIMEOUT_S)
        except KafkaException as error:
            # Its outcome is unknown: its records are neither expected nor forbidden.
            if not error.args[0].txn_requires_abort() and not error.args[0].fatal():
                raise
            self._producers = {name: running for name, running in self._producers.items() if running is not producer}
            return
        (self._ledger.committed if ending == "commit" else self._ledger.rolled_back)(pending)

    def _send(
        self, producer: Producer, noise: Random, partitions: range, count: int, note: Callable[..., None]
    ) -> None:
        for _ in range(count):
            record = self._record(noise)
            while True:
                try:
                    producer.produce(self._topic, partition=noise.choice(partitions), on_delivery=note, **record)
                    break
                except BufferError:
                    producer.poll(0.1)
                except KafkaException as error:
                    if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                        raise
                    producer.poll(0.2)  # it hasn't heard of an added partition yet
        if left := producer.flush(TIMEOUT_S):
            raise TimeoutError(f"{left} records of {self._topic} were not delivered")

    def _record(self, noise: Random) -> dict[str, Any]:
        kind = noise.random()
        key = None if kind < 0.2 else b"" if kind < 0.25 else b"%d" % noise.randrange(50)
        headers = noise.choice(ODD_HEADERS[:-1]) if kind < 0.3 else None
        record = {"key": key, "value": self._value(noise), "headers": headers}
        when = noise.random()
        if when < 0.03:
            return record | {"timestamp": noise.choice(WILD_TIMES)}
        return record | ({"timestamp": _NOW - noise.randrange(3 * _DAY)} if when < 0.2 else {})

    def _producer(self, kind: str, noise: Random) -> Producer:
        codec = noise.choice(CODECS)
        name = f"{kind}-{noise.randrange(2)}" if kind == "transaction" else f"{kind}-{codec}"
        if name not in self._producers:
            self._producers[name] = self._made(kind, name, codec)
        return self._producers[name]

    def _anew(self, kind: str, noise: Random) -> Producer:
        self._producers = {name: producer for name, producer in self._producers.items() if not name.startswith(kind)}
        return self._producer(kind, noise)

    def _made(self, kind: str, name: str, codec: str) -> Producer:
        options: dict[str, Any] = {
            "compression.type": codec,
            "log_level": 0,
            "topic.metadata.refresh.interval.ms": 1_000,
        }
        match kind:
            case "idempotent":
                options |= {"enable.idempotence": True}
            case "single":
                options |= {"batch.num.messages": 7}
            case "transaction":
                options |= {"transactional.id": f"{self._topic}-{self._name}-{name}", "transaction.timeout.ms": 600_000}
        producer = rdkafka(self._bootstrap, **options)
        if kind == "transaction":
            producer.init_transactions(TIMEOUT_S)
        return producer
