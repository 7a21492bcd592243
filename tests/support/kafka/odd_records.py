"""Odd records on a real broker, by two foreign clients.

librdkafka can't write header keys that aren't UTF-8 and extreme timestamps; kafka-python can. No client can turn back a
broker's clock.
"""

from __future__ import annotations

import random
import struct
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import google_crc32c
from confluent_kafka import Producer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
INT64_MAX = (1 << 63) - 1
MEBIBYTE = 1 << 20
ODD_PAYLOADS: tuple[tuple[bytes | None, bytes | None], ...] = (
    (None, None),
    (b"", b""),
    (None, b""),
    (b"", None),
    (b"key", None),
    (None, b"value"),
    (b"\x00\xff\xfe", b"\xff" * 9),
)
EXTREME_TIMES = (
    1,
    -2,
    -(10**6),
    INT64_MAX,
    -INT64_MAX,
    253_402_300_799_999,
    253_402_300_800_000,
    -62_135_596_800_000,
    -62_135_596_800_001,
    1_700_000_000_123,
)
BINARY_NAMES = (b"\xff\xfe", b"\xc3\x28", b"ok", b"\xed\xa0\x80", b"")
ODD_HEADERS: tuple[list[tuple[str, bytes | None]] | None, ...] = (
    None,
    [],
    [("a", b"1"), ("a", b"1"), ("b", None), ("a", b"")],
    [("", b"empty name"), ("", None)],
    [("naïve-☃", b"\xff\x00")],
    [(f"h{number}", str(number).encode()) for number in range(200)],
)


class RawHeaderName(str):
    __slots__ = ("wire",)

    def __new__(cls, wire: bytes) -> Self:
        made = super().__new__(cls, wire.decode("utf-8", "replace"))
        made.wire = wire
        return made

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return self.wire


def rdkafka(bootstrap: str, **options: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "message.max.bytes": 64 * MEBIBYTE,
            "queue.buffering.max.kbytes": 1 << 20,
            "linger.ms": 5,
            **options,
        }
    )


def produce_odd_records(bootstrap: str, topic: str, partitions: int) -> None:
    for codec in CODECS:
        producer = rdkafka(bootstrap, **{"compression.type": codec})
        for partition in range(partitions):
            for number, (key, value) in enumerate(ODD_PAYLOADS):
                headers = ODD_HEADERS[number % len(ODD_HEADERS)]
                producer.produce(topic, key=key, value=value, headers=headers, partition=partition)
        producer.flush()


def produce_batch_sizes(bootstrap: str, topic: str, partitions: int, values: Sequence[bytes], seed: int) -> None:
    noise = random.Random(seed)
    for codec in CODECS:
        single = rdkafka(bootstrap, **{"compression.type": codec, "batch.num.messages": 1})
        for number in range(20):
            single.produce(topic, key=b"one", value=noise.choice(values), partition=number % partitions)
        single.flush()
        many = rdkafka(bootstrap, **{"compression.type": codec, "linger.ms": 200, "batch.size": 4 * MEBIBYTE})
        for number in range(8_000):
            many.produce(
                topic,
                key=str(number % 97).encode(),
                value=noise.choice(values),
                partition=number % partitions,
                timestamp=1_600_000_000_000 + noise.randrange(-10_000_000, 10_000_000),
                headers=[("n", str(number).encode())] if number % 3 else None,
            )
        many.flush()


def produce_transactions(bootstrap: str, topic: str, partitions: int) -> None:
    plain = rdkafka(bootstrap)
    writers = [rdkafka(bootstrap, **{"transactional.id": f"{topic}-{name}"}) for name in ("first", "second")]
    for writer in writers:
        writer.init_transactions(30)
    for turn in range(8):
        for writer in writers:
            writer.begin_transaction()
        for number in range(40):
            for which, writer in enumerate(writers):
                writer.produce(topic, value=f"txn {turn} {which} {number}".encode(), partition=number % partitions)
            plain.produce(topic, value=f"plain {turn} {number}".encode(), partition=number % partitions)
            if number % 10 == 0:
                plain.flush()
                for writer in writers:
                    writer.flush()
        for which, writer in enumerate(writers):
            if (turn + which) % 2:
                writer.abort_transaction(30)
            else:
                writer.commit_transaction(30)
    plain.flush()


def produce_large(bootstrap: str, topic: str, partitions: int, count: int, seed: int) -> None:
    payload = random.Random(seed).randbytes(5_000_000)
    producers = [rdkafka(bootstrap, **{"compression.type": codec}) for codec in CODECS]
    for number in range(count):
        producer = producers[number % len(CODECS)]
        mark = number.to_bytes(8, "big")
        producer.produce(topic, key=mark, value=mark + payload[number:], partition=number % partitions)
        producer.flush()


def produce_extreme_times(bootstrap: str, topic: str, partitions: int) -> None:
    with kafka_python_producer(bootstrap) as producer:
        for partition in range(partitions):
            for timestamp in EXTREME_TIMES:
                value = str(timestamp).encode()
                producer.send(topic, key=b"t", value=value, partition=partition, timestamp_ms=timestamp).get(timeout=30)


def produce_binary_names(bootstrap: str, topic: str) -> tuple[tuple[tuple[bytes, bytes], ...], ...]:
    """Return the headers: consumers crash on them."""
    sent = tuple(((name, b"v"), (b"plain", b""), (name, b"w")) for name in BINARY_NAMES)
    with kafka_python_producer(bootstrap) as producer:
        for headers in sent:
            wire = [(RawHeaderName(name), value) for name, value in headers]
            producer.send(topic, value=b"h", partition=0, headers=wire).get(timeout=30)
    return sent


@contextmanager
def kafka_python_producer(bootstrap: str) -> Iterator[Any]:
    from kafka import KafkaProducer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=0)
        try:
            yield producer
        finally:
            producer.close()


def set_append_times(segment: Path, times: Sequence[int]) -> int:
    """Write append times (ms) to a segment's batches. Return their number."""
    log = bytearray(segment.read_bytes())
    position = count = 0
    while position + 61 <= len(log):
        (length,) = struct.unpack_from(">i", log, position + 8)
        end = position + 12 + length
        (attributes,) = struct.unpack_from(">h", log, position + 21)
        if attributes & 0x08:
            struct.pack_into(">q", log, position + 35, times[count % len(times)])
            struct.pack_into(">I", log, position + 17, google_crc32c.value(bytes(log[position + 21 : end])))
            count += 1
        position = end
    with segment.open("r+b") as file:
        file.write(log)
    return count
