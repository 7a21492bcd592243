"""Topics whose records carry a registry's envelope: columns by the newest schema, every byte back, no record lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import message_factory

from archiver.config import load_config
from archiver.errors import SchemaRegistryUnavailable, UnknownSubject
from archiver.ingest.job import ArchiveJob, JobReport
from tests.archiver.schemas.fake_registry import FakeRegistry, fake_registry
from tests.inline_engine import InlineEngine
from tests.integration.readers import from_archive, from_kafka
from tests.schema_mapping.proto_text import descriptor_of
from tests.stack import Stack

pytestmark = pytest.mark.integration

FORMAT = {"format": "protobuf", "wire_format": "confluent"}
FIRST = 'syntax = "proto3"; package t; message M { int32 a = 1; }'
SECOND = 'syntax = "proto3"; package t; message M { int32 a = 1; string b = 2; }'
OTHER = 'syntax = "proto3"; package t; message N { int32 a = 1; }'


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry


def run(config: Path) -> JobReport:
    return ArchiveJob(load_config(config), engine=InlineEngine()).run_once()


def enveloped(schema_id: int, text: str, **fields: object) -> bytes:
    made = message_factory.GetMessageClass(descriptor_of(text, "t.M" if "message M" in text else "t.N"))(**fields)
    return b"\0" + schema_id.to_bytes(4, "big") + b"\0" + made.SerializeToString()


def read(stack: Stack, config: Path, topic: str) -> list[dict[str, Any]]:
    rows = stack.catalog().load_table(load_config(config).topic(topic).table).scan().to_arrow().to_pylist()
    return [row["val"] for row in sorted(rows, key=lambda row: row["kafka"]["offset"])]


def test_records_of_many_schemas_in_one_topic(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    first = registry.register(f"{topic}-value", FIRST)
    other = registry.register("others", OTHER)
    config = stack.config({topic: {"value": FORMAT}}, schema_registry={"url": registry.url})
    stack.produce(
        topic,
        {"value": enveloped(first, FIRST, a=1)},
        {"value": enveloped(other, OTHER, a=2)},
        {"value": enveloped(77, FIRST, a=3)},
        {"value": b"no envelope"},
        {"value": None},
    )
    assert run(config).succeeded
    second = registry.register(f"{topic}-value", SECOND)
    stack.produce(topic, {"value": enveloped(second, SECOND, a=6, b="new")}, {"value": enveloped(first, FIRST, a=7)})
    assert run(config).succeeded
    rows = read(stack, config, topic)
    assert [row and row["a"] for row in rows] == [1, None, None, None, None, 6, 7]
    assert [row and row["b"] for row in rows] == [*[None] * 5, "new", ""]
    assert [row and row["__err__"] for row in rows[1:4]] == ["other_message@5", "unknown_schema_id@1", "bad_envelope@0"]
    assert rows[5]["__prefix__"] == b"\0" + second.to_bytes(4, "big") + b"\0"
    assert [row is None or row["__raw__"] is None for row in rows] == [True, False, False, False, True, True, True]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_a_record_newer_than_the_columns(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    registry.register(f"{topic}-value", FIRST)
    later = registry.register("elsewhere", SECOND)
    config = stack.config({topic: {"value": FORMAT}}, schema_registry={"url": registry.url})
    stack.produce(topic, {"value": enveloped(later, SECOND, a=1, b="new")})
    assert run(config).succeeded
    (row,) = read(stack, config, topic)
    assert (row["a"], row["__unrecognized__"], row["__raw__"]) == (1, b"\x12\x03new", None)


def test_a_registry_that_is_down_stops_only_its_topics(stack: Stack, registry: FakeRegistry) -> None:
    enveloped_topic, plain = stack.topic(), stack.topic()
    number = registry.register(f"{enveloped_topic}-value", FIRST)
    topics = {enveloped_topic: {"value": FORMAT}, plain: {}}
    config = stack.config(topics, schema_registry={"url": registry.url, "timeout": "100ms"})
    stack.produce(enveloped_topic, {"value": enveloped(number, FIRST, a=1)})
    stack.produce(plain, {"value": b"x"})
    registry.faults[:] = [503] * 12
    report = run(config)
    failed = {topic.topic: type(topic.error) for topic in report.topics if topic.error}
    assert failed == {enveloped_topic: SchemaRegistryUnavailable}
    assert len(read(stack, config, plain)) == 1
    assert run(config).succeeded
    assert [row["a"] for row in read(stack, config, enveloped_topic)] == [1]


def test_a_subject_that_is_not_there_is_named(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": FORMAT}}, schema_registry={"url": registry.url})
    (report,) = run(config).topics
    assert isinstance(report.error, UnknownSubject)
    assert f"{topic}-value" in str(report.error)
