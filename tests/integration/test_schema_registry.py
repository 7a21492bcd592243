"""Records with a registry's envelope."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import message_factory
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.engine.runner import Engine
from archiver.errors import SchemaRegistryUnavailable, UnknownSubject
from archiver.ingest.events import JobEvent, SchemaRegistryDown, WavePlanned
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.schemas.registry.client import client_of
from archiver.upkeep.reprocess.job import Reprocess
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.fake_registry import FakeRegistry, fake_registry
from tests.support.schemas.proto_text import compile_text, descriptor_of
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

FORMAT = {"format": "protobuf", "wire_format": "confluent"}
FIRST = 'syntax = "proto3"; package t; message M { int32 a = 1; }'
SECOND = 'syntax = "proto3"; package t; message M { int32 a = 1; string b = 2; }'
OTHER = 'syntax = "proto3"; package t; message N { int32 a = 1; }'


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry


def run(config: Path, engine: Engine | None = None) -> JobReport:
    client_of.cache_clear()  # as another process would, knowing nothing
    return ArchiveJob(load_config(config), engine=engine or InlineEngine()).run_once()


def bare(text: str, **fields: object) -> bytes:
    name = "t.M" if "message M" in text else "t.N"
    return message_factory.GetMessageClass(descriptor_of(text, name))(**fields).SerializeToString()


def enveloped(schema_id: int, text: str, **fields: object) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + b"\0" + bare(text, **fields)


def read(stack: Stack, config: Path, topic: str) -> list[dict[str, Any]]:
    rows = stack.catalog().load_table(load_config(config).topic(topic).table).scan().to_arrow().to_pylist()
    return [row["val"] for row in sorted(rows, key=lambda row: (row["kafka"]["partition"], row["kafka"]["offset"]))]


def test_records_of_many_schemas_in_one_topic(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    first = registry.register(f"{topic}-value", FIRST)
    other_id = registry.register("others", OTHER)
    config = stack.config({topic: {"value": FORMAT}}, schema_registry={"url": registry.url})
    stack.produce(
        topic,
        {"value": enveloped(first, FIRST, a=1)},
        {"value": enveloped(other_id, OTHER, a=2)},
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


def test_schemas_that_protoc_refuses(stack: Stack, registry: FakeRegistry, tmp_path: Path) -> None:
    topic = stack.topic()
    options = """import "google/protobuf/descriptor.proto"; import "acme/options.proto"; enum L { LOW = 0; HIGH = 1; }
      extend google.protobuf.FieldOptions { optional L x = 50001; }"""
    field = 'repeated int32 a = 1 [packed = false, (x) = "HIGH"]'
    quoted = f'syntax = "proto3"; package t; {options} message M {{ {field}; int32 fooBar = 2; int32 foo_bar = 3; }}'
    older = registry.register(f"{topic}-value", FIRST.replace("int32 a", "acme.Gone a"))
    latest = registry.register(f"{topic}-value", quoted)
    values = [b"\0" + latest.to_bytes(4, "big") + b"\0" + body for body in (b"\x08\1\x08\2\x10\3\x18\4", b"\x0a\2\1\2")]
    stack.produce(topic, *({"value": value} for value in (*values, enveloped(older, FIRST, a=7))))
    config = stack.config({topic: {"value": FORMAT}}, schema_registry={"url": registry.url})
    assert run(config).succeeded
    rows = read(stack, config, topic)
    assert [row["a"] for row in rows] == [[1, 2], [1, 2], None]
    assert [row["__err__"] for row in rows] == [None, None, "bad_schema@1"]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
    shown = CliRunner().invoke(app, ["replay", topic, "--config", str(config), "--format", "jsonl", "--decode"])
    assert '"fooBar":3,"foo_bar":4' in shown.output.replace(" ", "").replace("\\", "")
    replaced = descriptor_set_of(FIRST, tmp_path / "older.binpb")
    value = {**FORMAT, "descriptors": {str(older): str(replaced)}}
    config = stack.config({topic: {"value": value}}, schema_registry={"url": registry.url})
    assert run(config).succeeded
    assert Reprocess(load_config(config), topic, engine=InlineEngine()).run().succeeded
    assert [row["__err__"] for row in read(stack, config, topic)] == [None, None, None]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def descriptor_set_of(text: str, file: Path) -> Path:
    file.write_bytes(compile_text(text).descriptor_set)
    return file


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
    registry.down = True
    report = run(config)
    failed = {topic.topic: topic.error for topic in report.topics if topic.error}
    assert failed.keys() == {enveloped_topic}
    assert isinstance(failed[enveloped_topic], SchemaRegistryUnavailable)
    assert "nothing is known yet of the topic's schema" in str(failed[enveloped_topic])
    assert len(read(stack, config, plain)) == 1
    registry.down = False
    assert run(config).succeeded
    assert [row["a"] for row in read(stack, config, enveloped_topic)] == [1]


def test_what_a_registry_that_is_down_has_said_before_counts(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic(2)
    first = registry.register(f"{topic}-value", FIRST)
    elsewhere = registry.register("elsewhere", SECOND)
    config = stack.config({topic: {"value": FORMAT}}, schema_registry={"url": registry.url, "timeout": "100ms"})

    def produce(partition: int, *ids: int) -> None:
        for schema_id in ids:
            value = enveloped(schema_id, SECOND, a=schema_id, b="new")
            stack.produce(topic, {"value": value, "partition": partition})

    produce(0, first, elsewhere)
    assert run(config).succeeded
    unseen = registry.register(f"{topic}-value", SECOND)
    registry.down = True
    asked = len(registry.asked)
    produce(0, first, elsewhere, first, unseen, first)
    produce(1, first, elsewhere)
    report = run(config).topics[0]
    assert report.error is None
    ends = {partition.partition: (partition.to_offset, partition.error) for partition in report.partitions}
    offset, error = ends[0]
    assert offset == 5, "everything before the batch of the first record whose id was never seen"
    assert isinstance(error, SchemaRegistryUnavailable)
    assert {"partition": 0, "offset": 5, "schema_id": unseen}.items() <= error.context.items()
    assert ends[1] == (2, None)
    assert len(registry.asked) == asked
    rows = read(stack, config, topic)
    assert [row["__err__"] for row in rows] == [None] * 7
    assert "b" not in rows[0]
    registry.down = False
    assert run(config).succeeded
    rows = read(stack, config, topic)
    assert [row["a"] for row in rows[:7]] == [first, elsewhere, first, elsewhere, first, unseen, first]
    assert [row["__err__"] for row in rows] == [None] * 9
    assert [row["b"] for row in rows[5:7]] == ["new", "new"]
    assert from_archive(config, topic, 2) == from_kafka(stack, topic, 2)


class Plans:
    def __init__(self) -> None:
        self.waves: list[list[tuple[int, int]]] = []

    def __call__(self, event: JobEvent) -> None:
        if isinstance(event, WavePlanned):
            planned = [task for range_ in event.ranges.values() for task in range_]
            self.waves.append([(task.start_offset, task.end_offset) for task in planned])


def test_records_behind_a_waiting_one_are_not_fetched(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    first = registry.register(f"{topic}-value", FIRST)
    settings = {"url": registry.url, "timeout": "100ms"}
    config = stack.config({topic: {"value": FORMAT}}, schema_registry=settings)
    seen = Plans()
    job = ArchiveJob(load_config(config), observer=seen, engine=InlineEngine())
    stack.produce(topic, {"value": enveloped(first, FIRST, a=1)})
    assert job.run_once().succeeded
    unseen = registry.register(f"{topic}-value", SECOND)
    stack.produce(
        topic, *({"value": enveloped(schema_id, SECOND, a=2)} for schema_id in (unseen, *[first] * 20)), linger_ms=0
    )
    registry.down = True
    client_of.cache_clear()
    for _ in range(2):
        assert not job.run_once().succeeded
    assert seen.waves[1] == [(1, 22)]
    assert set(map(tuple, seen.waves[2:])) == {((1, 2),)}
    registry.down = False
    client_of.cache_clear()
    assert job.run_once().succeeded
    assert [row["a"] for row in read(stack, config, topic)] == [1, *[2] * 21]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_an_id_learned_from_a_record_is_remembered(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    registry.register(f"{topic}-value", FIRST)
    elsewhere = registry.register("elsewhere", SECOND)
    config = stack.config({topic: {"value": FORMAT}}, schema_registry={"url": registry.url, "timeout": "100ms"})
    for _ in range(2):
        stack.produce(topic, {"value": enveloped(elsewhere, SECOND, a=1)})
        assert run(config).succeeded
    asked = f"/apis/ccompat/v7/schemas/ids/{elsewhere}?subject={topic}-value"
    assert registry.asked.count(asked) == 1


@pytest.mark.parametrize("strategy", ["topic_name", "record_name", "topic_record_name"])
def test_several_message_types_in_one_topic(stack: Stack, registry: FakeRegistry, strategy: str) -> None:
    topic = stack.topic()
    subjects = {
        "topic_name": (f"{topic}-value", "one", "another"),
        "record_name": ("whatever", "t.M", "t.N"),
        "topic_record_name": ("whatever", f"{topic}-t.M", f"{topic}-t.N"),
    }[strategy]
    m_id, n_id = (registry.register(subject, text) for subject, text in zip(subjects[1:], (FIRST, OTHER), strict=True))
    imports = 'syntax = "proto3"; package t; import "m.proto"; import "n.proto";'
    both = f"{imports} message All {{ oneof one {{ M m = 1; N n = 2; }} }}"
    all_id = registry.register(subjects[0], both, [("m.proto", subjects[1], 1), ("n.proto", subjects[2], 1)])
    value = {**FORMAT, "messages": ["t.N", "t.M"], "subject_strategy": strategy}
    config = stack.config({topic: {"value": value}}, schema_registry={"url": registry.url})
    stack.produce(
        topic,
        {"value": enveloped(m_id, FIRST, a=1)},
        {"value": enveloped(n_id, OTHER, a=2)},
        {"value": None},
        {"value": b"\0" + all_id.to_bytes(4, "big") + b"\0\x0a\x02\x08\x03"},
        {"value": enveloped(m_id, FIRST, a=0) + b"\x08\0"},
    )
    assert run(config).succeeded
    later = registry.register(subjects[1], SECOND)
    if strategy == "topic_name":
        registry.register(subjects[0], both, [("m.proto", subjects[1], 2), ("n.proto", subjects[2], 1)])
    stack.produce(topic, {"value": enveloped(later, SECOND, a=5, b="new")})
    assert run(config).succeeded
    rows = read(stack, config, topic)
    assert [row and row["m"] and row["m"]["a"] for row in rows] == [1, None, None, None, 0, 5]
    assert [row and row["n"] and row["n"]["a"] for row in rows] == [None, 2, None, None, None, None]
    assert rows[5]["m"]["b"] == "new"
    assert (rows[3]["__err__"], rows[3]["__raw__"][:1]) == ("other_message@5", b"\0")
    assert [row is not None and row["__raw__"] is not None for row in rows] == [False, False, False, True, True, False]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_the_list_of_messages_changes(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    m_id, n_id = registry.register("t.M", FIRST), registry.register("t.N", OTHER)
    table = f"kafka.{unique('t')}"
    value = {**FORMAT, "subject_strategy": "record_name"}
    names: dict[str, Path] = {}
    dsn = stack.database()
    for messages in ("M", "NM", "N", "MN"):
        section = {"value": {**value, "messages": [f"t.{message}" for message in messages]}, "table": table}
        names[messages] = stack.config({topic: section}, schema_registry={"url": registry.url}, registry={"dsn": dsn})
        stack.produce(topic, {"value": enveloped(m_id, FIRST, a=1)}, {"value": enveloped(n_id, OTHER, a=2)})
        assert run(names[messages]).succeeded
    config = names["MN"]
    error = "other_message@5"
    assert [row["__err__"] for row in read(stack, config, topic)] == [None, error, None, None, error, None, None, None]
    struct = stack.catalog().load_table(table).schema().find_type("val")
    assert [field.name for field in struct.fields if not field.name.startswith("__")] == ["m", "n"]
    report = Reprocess(load_config(config), topic, engine=InlineEngine()).run()
    assert report.succeeded, report.failures
    rows = read(stack, config, topic)
    assert [row["m"] and row["m"]["a"] for row in rows] == [1, None] * 4
    assert [row["n"] and row["n"]["a"] for row in rows] == [None, 2] * 4
    assert [(row["__err__"], row["__raw__"]) for row in rows] == [(None, None)] * 8
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_what_lacks_an_envelope_is_decoded_again_once_coerced(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    first = registry.register(f"{topic}-value", FIRST)
    config = stack.config({topic: {"value": {**FORMAT, "coerce": False}}}, schema_registry={"url": registry.url})
    stack.produce(topic, {"value": bare(FIRST, a=1)}, {"value": enveloped(first, FIRST, a=2)})
    assert run(config).succeeded
    assert [row["__err__"] for row in read(stack, config, topic)] == ["bad_envelope@0", None]
    produced = from_kafka(stack, topic, 1)
    config.write_text(config.read_text().replace('"coerce" = false', '"coerce" = true'))
    assert from_archive(config, topic, 1) == produced, "a row that wasn't decoded comes back as it is"
    report = Reprocess(load_config(config), topic, engine=InlineEngine()).run()
    assert report.succeeded, report.failures
    assert [(row["a"], row["__prefix__"]) for row in read(stack, config, topic)] == [
        (1, None),
        (2, enveloped(first, FIRST)),
    ]
    assert [seen.value for seen in from_archive(config, topic, 1)] == [enveloped(first, FIRST, a=1), produced[1].value]
    config.write_text(config.read_text().replace('"coerce" = true', '"coerce" = false'))
    assert from_archive(config, topic, 1) == produced


def test_repairs_and_previews_go_on_while_the_registry_is_down(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    first = registry.register(f"{topic}-value", FIRST)
    section = {"url": registry.url, "timeout": "100ms"}
    config = stack.config({topic: {"value": {**FORMAT, "coerce": False}}}, schema_registry=section)
    stack.produce(topic, {"value": bare(FIRST, a=1)}, {"value": enveloped(first, FIRST, a=2)})
    assert run(config).succeeded
    registry.down = True
    config.write_text(config.read_text().replace('"coerce" = false', '"coerce" = true'))
    client_of.cache_clear()
    diff = json.loads(CliRunner().invoke(app, ["schema", "diff", topic, "--json", "--config", str(config)]).stdout)
    assert (diff["is_new"], diff["changes"]) == (True, [])
    assert diff["schema_registry_down"]["kind"] == "SchemaRegistryUnavailable"
    report = Reprocess(load_config(config), topic, engine=InlineEngine()).run()
    assert report.succeeded, report.failures
    assert isinstance(report.schema_registry_down, SchemaRegistryUnavailable)
    assert [row["a"] for row in read(stack, config, topic)] == [1, 2]


def test_keys_of_several_types(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    m_id, n_id = registry.register("t.M", FIRST), registry.register("t.N", OTHER)
    key = {**FORMAT, "messages": ["t.M", "t.N"], "subject_strategy": "record_name"}
    config = stack.config({topic: {"key": key}}, schema_registry={"url": registry.url})
    stack.produce(topic, {"key": enveloped(m_id, FIRST, a=1)}, {"key": enveloped(n_id, OTHER, a=2)}, {"value": b"x"})
    assert run(config).succeeded
    rows = stack.catalog().load_table(load_config(config).topic(topic).table).scan().to_arrow().to_pylist()
    keys = [row["key"] for row in sorted(rows, key=lambda row: row["kafka"]["offset"])]
    assert [key and (key["m"] and key["m"]["a"], key["n"] and key["n"]["a"]) for key in keys] == [
        *((1, None), (None, 2), None)
    ]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_a_coerced_replay_adds_envelopes(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    first = registry.register(f"{topic}-value", FIRST)
    format_ = {**FORMAT, "coerce": True}
    config = stack.config({topic: {"value": format_, "key": format_}}, schema_registry={"url": registry.url})
    registry.register(f"{topic}-key", FIRST)
    damage = b"\0\0\0"
    stack.produce(
        topic,
        {"key": bare(FIRST, a=7), "value": bare(FIRST, a=1)},
        {"key": enveloped(first, FIRST, a=8), "value": enveloped(first, FIRST, a=2)},
        {"value": None},
        {"value": b""},
        {"value": damage},
        {"value": b"\x08\0"},
        {"value": b"\xff\xff"},
    )
    assert run(config).succeeded
    second = registry.register(f"{topic}-value", SECOND)
    stack.produce(topic, {"value": bare(SECOND, a=3, b="new")})
    assert run(config).succeeded
    rows = read(stack, config, topic)
    assert [row and row["a"] for row in rows] == [1, 2, None, 0, None, 0, None, 3]
    assert [row and row["__prefix__"] is not None for row in rows] == [False, True, None, *[False] * 5]
    assert [row and row["__err__"] for row in rows] == [
        *(None, None, None, None, "bad_envelope@0", None, "bad_envelope@0", None)
    ]
    produced = from_kafka(stack, topic, 1)
    coerced = from_archive(config, topic, 1)
    assert [seen.value for seen in coerced] == [
        enveloped(first, FIRST, a=1),
        produced[1].value,
        None,
        enveloped(first, FIRST),
        damage,
        enveloped(first, FIRST) + b"\x08\0",
        b"\xff\xff",
        enveloped(second, SECOND, a=3, b="new"),
    ]
    key_id = first + 1
    assert [seen.key for seen in coerced] == [enveloped(key_id, FIRST, a=7), produced[1].key, *[None] * 6]
    plain = config.read_text().replace('"coerce" = true', '"coerce" = false')
    config.write_text(plain)
    assert from_archive(config, topic, 1) == produced


def test_a_topic_goes_on_after_its_subject_was_deleted(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    first = registry.register(f"{topic}-value", FIRST)
    config = stack.config({topic: {"value": FORMAT}}, schema_registry={"url": registry.url})
    stack.produce(topic, {"value": enveloped(first, FIRST, a=1)})
    assert run(config).succeeded
    registry.delete(f"{topic}-value")
    stack.produce(topic, {"value": enveloped(first, FIRST, a=2)})
    client_of.cache_clear()
    events: list[JobEvent] = []
    assert ArchiveJob(load_config(config), observer=events.append, engine=InlineEngine()).run_once().succeeded
    (warning,) = (event for event in events if isinstance(event, SchemaRegistryDown))
    assert isinstance(warning.error, UnknownSubject)
    assert "the subject was deleted in the schema registry" in str(warning.error)
    assert [row["a"] for row in read(stack, config, topic)] == [1, 2]


def test_indexes_of_old_clients(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    text = (
        'syntax = "proto3"; package p; message A { int32 a = 1; message N { int32 n = 1; } } message B { int32 b = 1; }'
    )
    number = registry.register(f"{topic}-value", text)
    messages = {**FORMAT, "messages": ["p.A", "p.B", "p.A.N"]}
    config = stack.config({topic: {"value": messages}}, schema_registry={"url": registry.url})
    head = b"\0" + number.to_bytes(4, "big")
    heads = [b"\2\2", b"\1\1", b"\2\0\0", b"\4\0\0", b"\0", b"\1\0", b"\1\7"]
    stack.produce(topic, *({"value": head + indexes + b"\x08\x07"} for indexes in heads))
    assert run(config).succeeded
    rows = read(stack, config, topic)
    decoded = [{part: row[part][part] for part in "abn" if row[part] is not None} for row in rows]
    assert decoded == [{"b": 7}, {"b": 7}, {}, {"n": 7}, {"a": 7}, {"a": 7}, {}]
    assert [row["__err__"] for row in rows] == [None, None, "bad_tag@7", None, None, None, "bad_envelope@0"]
    assert rows[1]["__prefix__"] == head + b"\1\1"
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)


def test_a_subject_that_is_not_there_is_named(stack: Stack, registry: FakeRegistry) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": FORMAT}}, schema_registry={"url": registry.url})
    (report,) = run(config).topics
    assert isinstance(report.error, UnknownSubject)
    assert f"{topic}-value" in str(report.error)
