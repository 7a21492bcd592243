"""Python clients."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import time
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as Place
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPlace

from tests.support.archive.readers import Seen, seen_from
from tests.support.clients.kafka_client import IDLE_MS

TIMEOUT_S = 60.0
LARGE = 64 << 20


class ConfluentKafka:
    name = "librdkafka"
    version = importlib.metadata.version("confluent-kafka")

    def read(self, address: str, topic: str, from_time: int | None = None) -> Sequence[Seen]:
        reading = Consumer(self._options(address, "reader", **{"enable.partition.eof": True, "fetch.wait.max.ms": 10}))
        try:
            partitions = sorted(reading.list_topics(topic, TIMEOUT_S).topics[topic].partitions)
            seen = [record for partition in partitions for record in seen_from(reading, topic, partition)]
            if from_time is None:
                return seen
            requests = [TopicPartition(topic, partition, from_time) for partition in partitions]
            starts = {time.partition: time.offset for time in reading.offsets_for_times(requests, TIMEOUT_S)}
            return [record for record in seen if 0 <= starts[record.partition] <= record.offset]
        finally:
            reading.close()

    def read_as_member(
        self, address: str, topic: str, group: str, count: int, *, protocol: str | None = None
    ) -> Sequence[tuple[int, int]]:
        of_protocol = {"group.protocol": protocol} if protocol else {"session.timeout.ms": 6_000}
        reading = Consumer(self._options(address, group, **of_protocol))
        seen: list[tuple[int, int]] = []
        until = time.monotonic() + IDLE_MS / 1000
        try:
            reading.subscribe([topic])
            while len(seen) < count and time.monotonic() < until:
                result = reading.consume(count - len(seen), 0.2)
                assert all(item.error() is None for item in result), [item.error() for item in result]
                if result:
                    seen += [(record.partition() or 0, record.offset() or 0) for record in result]
                    reading.commit(asynchronous=False)
                    until = time.monotonic() + IDLE_MS / 1000
        finally:
            reading.close()
        return seen

    def _options(self, address: str, group: str, **more: object) -> dict[str, Any]:
        return {
            "bootstrap.servers": address,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "receive.message.max.bytes": 2 * LARGE,
            **more,
        }


class KafkaPython:
    name = "kafka-python"
    version = importlib.metadata.version("kafka-python")

    def read(self, address: str, topic: str, from_time: int | None = None) -> Sequence[Seen]:
        reading = self._consumer(address, None)
        try:
            places = [KafkaPythonPlace(topic, value) for value in sorted(reading.partitions_for_topic(topic))]
            reading.assign(places)
            reading.seek_to_beginning(*places)
            ends = reading.end_offsets(places)
            if from_time is not None:
                for position, result in reading.offsets_for_times(dict.fromkeys(places, from_time)).items():
                    reading.seek(position, ends[position] if result is None else result.offset)
            seen = []
            deadline = time.monotonic() + TIMEOUT_S
            while any(reading.position(value) < ends[value] for value in places):
                assert time.monotonic() < deadline
                seen += [record for records in reading.poll(timeout_ms=200).values() for record in records]
        finally:
            reading.close()
        return sorted(map(_seen, seen), key=lambda entry: entry[:2])

    def read_as_member(
        self, address: str, topic: str, group: str, count: int, *, protocol: str | None = None
    ) -> Sequence[tuple[int, int]]:
        reading = self._consumer(address, group, session_timeout_ms=6_000, heartbeat_interval_ms=500)
        seen: list[tuple[int, int]] = []
        until = time.monotonic() + IDLE_MS / 1000
        try:
            reading.subscribe([topic])
            while len(seen) < count and time.monotonic() < until:
                result = [record for records in reading.poll(timeout_ms=200).values() for record in records]
                if result:
                    seen += [(record.partition, record.offset) for record in result]
                    reading.commit()
                    until = time.monotonic() + IDLE_MS / 1000
        finally:
            reading.close()
        return seen

    def _consumer(self, address: str, group: str | None, **more: object) -> Any:
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        return KafkaConsumer(
            bootstrap_servers=address,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            max_partition_fetch_bytes=LARGE,
            **more,
        )


class Aiokafka:
    name = "aiokafka"
    version = importlib.metadata.version("aiokafka")

    def read(self, address: str, topic: str, from_time: int | None = None) -> Sequence[Seen]:
        return asyncio.run(self._read(address, topic, from_time))

    def read_as_member(
        self, address: str, topic: str, group: str, count: int, *, protocol: str | None = None
    ) -> Sequence[tuple[int, int]]:
        return asyncio.run(self._as_member(address, topic, group, count))

    async def _read(self, address: str, topic: str, from_time: int | None) -> list[Seen]:
        reading = self._consumer(address, None)
        await reading.start()
        try:
            reading.subscribe([topic])
            await reading.getmany(timeout_ms=0)  # it learns of partitions by itself
            reading.unsubscribe()
            places = [Place(topic, value) for value in sorted(reading.partitions_for_topic(topic) or ())]
            reading.assign(places)
            await reading.seek_to_beginning(*places)
            ends = await reading.end_offsets(places)
            if from_time is not None:
                times = await reading.offsets_for_times(dict.fromkeys(places, from_time))
                for position, start in times.items():
                    reading.seek(position, ends[position] if start is None else start.offset)
            seen: list[Any] = []
            while any([await reading.position(value) < ends[value] for value in places]):
                for records in (await reading.getmany(timeout_ms=200)).values():
                    seen += records
        finally:
            await reading.stop()
        return sorted(map(_seen, seen), key=lambda record: record[:2])

    async def _as_member(self, address: str, topic: str, group: str, count: int) -> list[tuple[int, int]]:
        reading = self._consumer(address, group, session_timeout_ms=6_000, heartbeat_interval_ms=500)
        reading.subscribe([topic])
        await reading.start()
        seen: list[tuple[int, int]] = []
        until = time.monotonic() + IDLE_MS / 1000
        try:
            while len(seen) < count and time.monotonic() < until:
                records = await reading.getmany(timeout_ms=200)
                if any(records.values()):
                    seen += [(item.partition, item.offset) for record in records.values() for item in record]
                    await reading.commit()
                    until = time.monotonic() + IDLE_MS / 1000
        finally:
            await reading.stop()
        return seen

    def _consumer(self, address: str, group: str | None, **more: object) -> Any:
        return AIOKafkaConsumer(
            bootstrap_servers=address,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            max_partition_fetch_bytes=LARGE,
            **more,
        )


def _seen(record: Any) -> Seen:
    kind, headers = record.timestamp_type + 1, tuple(record.headers)
    return Seen(record.partition, record.offset, kind, record.timestamp, record.key, record.value, headers)
