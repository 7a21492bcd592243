"""Contexts of a schema registry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archiver.config import load_config
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.schemas.registry.client import client_of
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.fake_registry import FakeRegistry, fake_registry
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

FORMAT = {"format": "protobuf", "wire_format": "confluent"}
X = 'syntax = "proto3"; package a; message X { string s = 1; }'
Y1 = 'syntax = "proto3"; package b; message Y { int64 n = 1; }'
Y2 = 'syntax = "proto3"; package b; message Y { int64 n = 1; string s = 2; }'
Z = 'syntax = "proto3"; package c; message Z { bool z = 1; }'


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry


def run(config: Path) -> JobReport:
    client_of.cache_clear()  # as another process would, knowing nothing
    return ArchiveJob(load_config(config), engine=InlineEngine()).run_once()


def rows(stack: Stack, config: Path, topic: str) -> list[dict[str, Any]]:
    archived = stack.catalog().load_table(load_config(config).topic(topic).table).scan().to_arrow().to_pylist()
    return sorted(archived, key=lambda row: row["kafka"]["offset"])


def enveloped(schema_id: int, body: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + b"\0" + body


def test_older_ids_of_keys_and_values_in_contexts(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    for schema_id, value, key in ((1, Y1, Z), (2, Y2, Z)):
        registry.register(f":.ctx:{topic}-value", value, schema_id=schema_id)
        registry.register(f":.keys:{topic}-key", key, schema_id=schema_id)
        registry.register(f"{topic}-value", X, schema_id=schema_id)
        registry.register(f"{topic}-key", X, schema_id=schema_id)
    registry.register(f"{topic}-value", Y1, schema_id=3)
    parts = {
        "value": {**FORMAT, "subject": f":.ctx:{topic}-value"},
        "key": {**FORMAT, "subject": f":.keys:{topic}-key"},
    }
    section = {"url": registry.url, "timeout": "100ms"}
    config = stack.config({topic: parts}, schema_registry=section)
    stack.produce(
        topic,
        {"key": enveloped(1, b"\x08\x01"), "value": enveloped(1, b"\x08\x07")},
        {"key": enveloped(2, b"\x08\x01"), "value": enveloped(2, b"\x08\x08\x12\x01x")},
        {"value": enveloped(3, b"\x08\x09")},
    )
    assert run(config).succeeded
    archived = rows(stack, config, topic)
    assert [(row["val"]["n"], row["val"]["s"], row["val"]["__err__"]) for row in archived] == [
        *((7, "", None), (8, "x", None), (None, None, "unknown_schema_id@1"))
    ]
    assert [row["key"] and (row["key"]["z"], row["key"]["__err__"]) for row in archived] == [*[(True, None)] * 2, None]
    registry.down = True  # what the registry said is remembered by context
    stack.produce(topic, {"key": enveloped(1, b"\x08\x01"), "value": enveloped(1, b"\x08\x0a")})
    assert run(config).succeeded
    assert [(row["key"]["z"], row["val"]["n"]) for row in rows(stack, config, topic)[3:]] == [(True, 10)]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_topics_of_several_contexts_share_a_client(stack: Stack, registry: FakeRegistry) -> None:
    topics = [stack.topic() for _ in range(3)]
    contexts = [":.a:", ":.b:", ""]
    bodies = [b"\x0a\x01x", b"\x08\x07", b"\x08\x01"]
    for topic, context, text in zip(topics, contexts, (X, Y1, Z), strict=True):
        registry.register(f"{context}{topic}-value", text, schema_id=1)
        registry.register(f"{context}{topic}-value", text, schema_id=2)
    sections = {
        topic: {"value": {**FORMAT, "subject": f"{context}{topic}-value"}}
        for topic, context in zip(topics, contexts, strict=True)
    }
    config = stack.config(sections, schema_registry={"url": registry.url})
    for topic, body in zip(topics, bodies, strict=True):
        stack.produce(topic, {"value": enveloped(1, body)}, {"value": enveloped(2, body)})
    assert run(config).succeeded
    columns = {"s": "x", "n": 7, "z": True}
    for topic, (name, value) in zip(topics, columns.items(), strict=True):
        assert [(row["val"][name], row["val"]["__err__"]) for row in rows(stack, config, topic)] == [(value, None)] * 2
        assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_the_context_in_the_url(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    registry.register(f":.ctx:{topic}-value", Y1, schema_id=1)
    registry.register(f":.ctx:{topic}-value", Y2, schema_id=2)
    registry.register(f"{topic}-value", X, schema_id=1)
    config = stack.config({topic: {"value": FORMAT}}, schema_registry={"url": f"{registry.url}/contexts/.ctx"})
    stack.produce(topic, {"value": enveloped(1, b"\x08\x07")})
    assert run(config).succeeded
    assert [(row["val"]["n"], row["val"]["__err__"]) for row in rows(stack, config, topic)] == [(7, None)]
