"""Envelopes on Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf import message_factory

from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.errors import SchemaRegistryUnavailable
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.schemas.registry.client import client_of
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_pyiceberg, rows_of_spark
from tests.support.schemas.fake_registry import FakeRegistry, fake_registry
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

FORMAT = {"format": "protobuf", "wire_format": "confluent"}
FIRST = 'syntax = "proto3"; package t; message M { int32 a = 1; }'
SECOND = 'syntax = "proto3"; package t; message M { int32 a = 1; string b = 2; }'
THIRD = 'syntax = "proto3"; package t; message M { int32 a = 1; string b = 2; int64 c = 3; }'
OTHER = 'syntax = "proto3"; package t; message N { int32 a = 1; }'


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry


def bare(text: str, message: str = "t.M", **fields: object) -> bytes:
    return message_factory.GetMessageClass(descriptor_of(text, message))(**fields).SerializeToString()


def head(schema_id: int) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + b"\0"


def run(config: Path, engine: SparkEngine) -> JobReport:
    client_of.cache_clear()  # as another process would, knowing nothing
    return ArchiveJob(load_config(config), engine=engine).run_once()


def asked_of_spark(engine: SparkEngine, config: Path, topic: str, columns: str) -> list[tuple[object, ...]]:
    table = load_config(config).topic(topic).table
    query = f"SELECT {columns} FROM lake.{table} ORDER BY kafka.partition, kafka.offset"
    return [tuple(row) for row in engine.session.sql(query).collect()]


def test_mixed_envelopes(stack: Stack, registry: FakeRegistry, engine: SparkEngine) -> None:
    topic = stack.topic(2)
    older, latest = (registry.register(f"{topic}-value", text) for text in (FIRST, SECOND))
    newer, other_id = registry.register("elsewhere", THIRD), registry.register("others", OTHER)
    config = stack.config({topic: {"value": FORMAT}}, schema_registry={"url": registry.url})
    values = [
        head(older) + bare(FIRST, a=1),
        head(latest) + bare(SECOND, a=2, b="two"),
        head(newer) + bare(THIRD, a=3, b="three", c=33),
        head(77) + bare(FIRST, a=4),
        head(other_id) + bare(OTHER, "t.N", a=5),
        bare(FIRST, a=6),
        None,
        head(latest),
        head(latest) + b"\x08",
        head(latest) + b"\x08\x00",
    ]
    stack.produce(topic, *({"value": value, "partition": at} for at in range(2) for value in values))
    assert run(config, engine).succeeded
    columns = "val.a, val.b, val.__err__, val.__prefix__, val.__unrecognized__, val.__raw__ IS NOT NULL"
    assert asked_of_spark(engine, config, topic, columns) == 2 * [
        (1, "", None, head(older), None, False),
        (2, "two", None, head(latest), None, False),
        (3, "three", None, head(newer), b"\x18\x21", False),
        (None, None, "unknown_schema_id@1", None, None, True),
        (None, None, "other_message@5", None, None, True),
        (None, None, "bad_envelope@0", None, None, True),
        (None, None, None, None, None, False),
        (0, "", None, head(latest), None, False),
        (None, None, "truncated@7", None, None, True),
        (0, "", None, head(latest), None, True),
    ]
    assert from_archive(config, topic, 2) == from_kafka(stack, topic, 2)


def test_several_messages_while_the_registry_goes_down(
    stack: Stack, registry: FakeRegistry, engine: SparkEngine
) -> None:
    topic = stack.topic(2)
    m_id, n_id = registry.register("t.M", FIRST), registry.register("t.N", OTHER)
    value = {**FORMAT, "messages": ["t.M", "t.N"], "subject_strategy": "record_name"}
    config = stack.config({topic: {"value": value}}, schema_registry={"url": registry.url, "timeout": "200ms"})

    def produce(partition: int, *values: bytes) -> None:
        for value in values:
            stack.produce(topic, {"value": value, "partition": partition})

    m, n = head(m_id) + bare(FIRST, a=1), head(n_id) + bare(OTHER, "t.N", a=2)
    produce(0, m, n)
    assert run(config, engine).succeeded
    unseen = head(registry.register("t.M", SECOND)) + bare(SECOND, a=3, b="new")
    registry.down = True
    produce(0, n, unseen, m)
    produce(1, m, n)
    (report,) = run(config, engine).topics
    places = {partition.partition: (partition.to_offset, type(partition.error)) for partition in report.partitions}
    assert places == {0: (3, SchemaRegistryUnavailable), 1: (2, type(None))}
    registry.down = False
    assert run(config, engine).succeeded
    assert asked_of_spark(engine, config, topic, "val.m.a, val.n.a, val.m.b, val.__err__") == [
        (1, None, None, None),
        (None, 2, None, None),
        (None, 2, None, None),
        (3, None, "new", None),
        (1, None, "", None),
        (1, None, None, None),
        (None, 2, None, None),
    ]
    table = load_config(config).topic(topic).table
    by_pyiceberg = rows_of_pyiceberg(stack, table)
    assert by_pyiceberg == rows_of_spark(engine, table)
    assert by_pyiceberg == rows_of_duckdb(stack, table)
    assert from_archive(config, topic, 2) == from_kafka(stack, topic, 2)
