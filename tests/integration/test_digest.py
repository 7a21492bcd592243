"""Digests equal the definition in docs/digest.md."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest
from confluent_kafka import TopicPartition
from pyiceberg.table import Table

from archiver.archive.topic_archive import open_archive
from archiver.config import Config, load_config
from archiver.engine.spark import SparkEngine
from archiver.replay import ReplayConsumer
from archiver.wire.record_digest import RecordDigest
from catalog.digests import DIGEST_ALGORITHM, add_digests
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import digest_of, from_kafka
from tests.support.kafka import odd_records
from tests.support.schemas.order_schema import ORDER_PROTO
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

PARTITIONS = 3


def registered(config: Config) -> list[tuple[int, int, int, str | None, str | None, str | None]]:
    with psycopg.connect(config.registry.dsn) as connection:
        return connection.execute(
            "SELECT partition, start_offset, end_offset, path, digest, digest_algorithm FROM files"
            " WHERE state = 'committed' ORDER BY partition, start_offset"
        ).fetchall()


def footer(table: Table, path: str) -> dict[bytes, bytes]:
    with table.io.new_input(path).open() as stream:
        return dict(pq.read_metadata(stream).metadata)


def replayed(config: Config, topic: str) -> RecordDigest:
    with ReplayConsumer(config) as consumer:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        return sum((RecordDigest.of_seen(batch) for batch in consumer.batches()), RecordDigest())


@pytest.fixture
def proto(tmp_path: Path) -> Path:
    path = tmp_path / "order.proto"
    path.write_text(ORDER_PROTO)
    return path


@pytest.mark.parametrize("time", ["CreateTime", "LogAppendTime"])
def test_every_side_has_the_digest_of_what_kafka_serves(
    stack: Stack, engine: SparkEngine, proto: Path, time: str
) -> None:
    topic = stack.topic(PARTITIONS, {"message.timestamp.type": time})
    value = {"format": "protobuf", "message": "shop.Order", "proto": str(proto)}
    path = stack.config({topic: {"value": value, "partition_by": "hour"}})
    config = load_config(path)
    for wave in (odd_records.produce_odd_records, odd_records.produce_transactions, odd_records.produce_extreme_times):
        if time == "CreateTime" or wave is not odd_records.produce_extreme_times:
            wave(stack.bootstrap_servers, topic, PARTITIONS)
        archive_once(path, topic, engine=engine)

    kafka = from_kafka(stack, topic, PARTITIONS)
    expected = digest_of(kafka)
    ranges = registered(config)
    table = stack.catalog().load_table(config.topic(topic).table)
    archive = open_archive(config, topic)
    assert sum(file is not None for _, _, _, file, _, _ in ranges) > PARTITIONS
    for partition, start, end, file, registry_digest, algorithm in ranges:
        kafka_digest = digest_of(
            record for record in kafka if record.partition == partition and start <= record.offset < end
        )
        batches = archive.records(partition, start, end)
        assert sum(map(RecordDigest.of_seen, batches), RecordDigest()).text == kafka_digest
        if file is None:
            assert (registry_digest, algorithm, kafka_digest) == (None, None, digest_of([]))
            continue
        assert (registry_digest, algorithm) == (kafka_digest, DIGEST_ALGORITHM)
        pairs = footer(table, file)
        assert pairs[b"archiver.digest"].decode() == kafka_digest
        assert pairs[b"archiver.digest-algorithm"].decode() == DIGEST_ALGORITHM

    assert replayed(config, topic).text == expected
    assert add_digests(digest for _, _, _, file, digest, _ in ranges if file is not None) == expected
    summaries = [snapshot.summary for snapshot in table.metadata.snapshots]
    assert add_digests(summary and summary["archiver.digest"] for summary in summaries) == expected


def test_a_changed_record_changes_the_digest(stack: Stack, engine: SparkEngine) -> None:
    topic = stack.topic(PARTITIONS)
    path = stack.config({topic: {}})
    odd_records.produce_odd_records(stack.bootstrap_servers, topic, PARTITIONS)
    archive_once(path, topic, engine=engine)
    kafka = from_kafka(stack, topic, PARTITIONS)
    total = add_digests(digest for _, _, _, _, digest, _ in registered(load_config(path)))
    assert digest_of(kafka) == total
    empty = next(record for record in kafka if record.value == b"")
    rest = [record for record in kafka if record is not empty]
    assert digest_of([*rest, empty._replace(value=None)]) != total
    assert digest_of(rest) != total
    assert digest_of([*kafka, empty]) != total
