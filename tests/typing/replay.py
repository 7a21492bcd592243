"""Types of `archiver.replay`."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, BinaryIO, assert_type

import pyarrow as pa
from confluent_kafka import KafkaError

from archiver.config import Config, load_config
from archiver.replay import (
    ReplayConsumer,
    ReplayMessage,
    ReplayOptions,
    Selection,
    TopicArchive,
    TopicPartition,
    open_archive,
    write_arrow,
    write_jsonl,
)


def consumer() -> None:
    config = load_config("archiver.toml")
    assert_type(config, Config)
    with ReplayConsumer(config, {"auto.offset.reset": "earliest"}) as entered:
        assert_type(entered, ReplayConsumer)


def reading(consumer: ReplayConsumer) -> None:
    assert_type(consumer.poll(), ReplayMessage | None)
    assert_type(consumer.poll(1.0), ReplayMessage | None)
    assert_type(consumer.consume(100, 1.0), list[ReplayMessage])
    assert_type(consumer.batches(), Iterator[pa.RecordBatch])


def partitions(consumer: ReplayConsumer, partition: TopicPartition) -> None:
    assert_type(consumer.assign([partition]), None)
    assert_type(consumer.incremental_assign([partition]), None)
    assert_type(consumer.unassign(), None)
    assert_type(consumer.incremental_unassign([partition]), None)
    assert_type(consumer.assignment(), list[TopicPartition])
    assert_type(consumer.subscribe(["orders"], on_assign=lambda who, given: None), None)
    assert_type(consumer.unsubscribe(), None)
    assert_type(consumer.pause([partition]), None)
    assert_type(consumer.resume([partition]), None)
    assert_type(consumer.seek(partition), None)


def offsets(consumer: ReplayConsumer, message: ReplayMessage, partition: TopicPartition) -> None:
    assert_type(consumer.position([partition]), list[TopicPartition])
    assert_type(consumer.get_watermark_offsets(partition, cached=True), tuple[int, int])
    assert_type(consumer.offsets_for_times([partition]), list[TopicPartition])
    assert_type(consumer.commit(message), list[TopicPartition] | None)
    assert_type(consumer.store_offsets(message), None)
    assert_type(consumer.committed([partition]), list[TopicPartition])


def about(consumer: ReplayConsumer) -> None:
    assert_type(sorted(consumer.list_topics("orders").topics), list[str])
    assert_type(consumer.cluster_id(), str | None)
    assert_type(consumer.memberid(), None)
    assert_type(consumer.consumer_group_metadata(), Any)
    assert_type(consumer.set_sasl_credentials("user", "password"), None)
    assert_type(consumer.close(), None)


def message(message: ReplayMessage, error: KafkaError | None) -> None:
    assert_type(message.error(), KafkaError | None)
    assert_type(message.topic(), str)
    assert_type(message.partition(), int)
    assert_type(message.offset(), int)
    assert_type(message.key(), Any)
    assert_type(message.value(), Any)
    assert_type(message.headers(), list[tuple[str, bytes | None]] | None)
    assert_type(message.timestamp(), tuple[int, int])
    assert_type(message.leader_epoch(), int | None)
    assert_type(message.latency(), float | None)
    assert_type(message.delivery_count(), int | None)
    assert_type(message.set_key(b"key"), None)
    assert_type(message.set_value({"a": 1}), None)
    assert_type(message.set_headers([]), None)
    assert_type(message.set_topic("orders"), None)
    assert_type(message.set_error(error), None)
    assert_type(len(message), int)


def archive(config: Config, stream: BinaryIO) -> None:
    archive = open_archive(config, "orders")
    assert_type(archive, TopicArchive)
    assert_type(archive.partitions, tuple[int, ...])
    assert_type(archive.watermarks(0), tuple[int, int])
    assert_type(archive.end(0), int)
    assert_type(archive.offset_for_time(0, 1_767_225_600_000), int | None)
    assert_type(archive.records(0, 10, 20), Generator[pa.RecordBatch])
    selection = Selection.parse(start="earliest", partitions=(0,))
    assert_type(selection, Selection)
    assert_type(write_jsonl(archive, selection, stream), int)
    assert_type(write_arrow(archive, selection, stream), int)
    assert_type(ReplayOptions.parse({"replay.parallelism": 2}), ReplayOptions)
