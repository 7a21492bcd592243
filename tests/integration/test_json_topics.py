"""A JSON topic with hostile values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.upkeep.compact.job import Compact, Wish
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.verify.job import Verify
from catalog.registry import Registry
from schema_mapping import LedgerState
from tests.support.archive.job_runs import archive_once, read, without_registry
from tests.support.archive.readers import Seen, from_archive, from_kafka, seen_from
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_spark
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.hostile_json import ORDER, odd_values
from tests.support.servers.serve_command import serving
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves sockets of collect() open
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Confluent's client
]

MEMBERS = dict(reversed(ORDER["properties"].items()))
NEWER = {
    **ORDER,
    "properties": {"customer": {"type": "string"}, **MEMBERS, "price": {"type": "string"}, "at": {"type": "array"}},
}
REGISTERED = {"format": "json", "wire_format": "confluent"}
GOOD = {"id": 1, "price": 1.5, "name": "a", "tags": ["x", None], "labels": {"k": 0.5}, "at": {"x": 1.0}}


def serialized(url: str, topic: str, schema: Any, values: list[Any]) -> list[bytes]:
    client = SchemaRegistryClient({"url": url})
    serializer = JSONSerializer(json.dumps(schema), client, conf={"auto.register.schemas": True})
    return [serializer(value, SerializationContext(topic, MessageField.VALUE)) for value in values]


def ledger(config: Path, topic: str) -> LedgerState:
    with Registry(load_config(config).registry.dsn) as registry:
        return registry.ledger.load(next(row for row in registry.topics.every() if row.topic == topic))


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def served(stack: Stack, config: Path, topic: str) -> list[Seen]:
    with serving(config) as address:
        consumer = stack.consumer(bootstrap_servers=address, enable_partition_eof=True)
        try:
            consumer.list_topics(topic, 60)
            return list(seen_from(consumer, topic, 0))
        finally:
            consumer.close()


def test_json_topic_end_to_end(stack: Stack, schema_registry: str, engine: SparkEngine, tmp_path: Path) -> None:
    topic = stack.topic()
    file = tmp_path / "key.schema.json"
    file.write_text(json.dumps(ORDER))
    sections = {topic: {"key": {"format": "json", "schema": str(file)}, "value": REGISTERED}}
    config = stack.config(sections, schema_registry={"url": schema_registry})
    hostile = odd_values()
    old = serialized(schema_registry, topic, ORDER, [GOOD, {**GOOD, "id": 2, "more": [1]}])
    stack.produce(topic, *({"value": value} for value in old), {"value": None}, {"value": b"no envelope"})
    stack.produce(topic, *({"key": odd, "value": old[0][:5] + odd} for odd in hostile))
    archive_once(config, topic, engine=InlineEngine())
    new = serialized(schema_registry, topic, NEWER, [{"customer": "c", "id": 3, "price": "9", "at": [1, 2]}])
    stack.produce(topic, *({"key": odd, "value": new[0][:5] + odd} for odd in reversed(hostile)))
    stack.produce(topic, {"value": new[0]}, {"value": old[0]}, {"key": b"", "value": b""})
    archive_once(config, topic, engine=InlineEngine())

    records = from_kafka(stack, topic, 1)
    assert from_archive(config, topic, 1) == records
    table = load_config(config).topic(topic).table
    differing = [
        pair
        for pair in zip(rows_of_spark(engine, table), rows_of_duckdb(stack, table), strict=True)
        if len(set(pair)) > 1
    ]
    assert differing[:3] == []
    assert Verify(load_config(config), [topic], engine=InlineEngine()).run().succeeded
    assert served(stack, config, topic) == records

    compacted = Compact(load_config(config), wish=Wish(min_files=2), engine=InlineEngine).run()
    assert compacted.succeeded, compacted
    assert compacted.done.files_after < compacted.done.files_before
    assert from_archive(config, topic, 1) == records
    assert Verify(load_config(config), [topic], engine=InlineEngine()).run().succeeded

    asked = f"SELECT val.price, count(*) FROM lake.{table} WHERE val.id = 3 GROUP BY 1"
    assert [tuple(row) for row in engine.session.sql(asked).collect()] == [("9", 1)]
    values = {row["kafka"]["offset"]: row["val"] for row in read(stack, config, topic).to_pylist()}
    assert values[0]["tags"] == ["x", None]
    assert values[0]["labels"] == [("k", 0.5)]
    assert values[0]["__raw__"] is None
    assert json.loads(values[1]["__unrecognized__"]) == {"more": [1]}
    assert values[2] is None
    assert values[3]["__err__"] == "bad_envelope@0"
    last = len(records) - 1
    assert (values[last - 2]["customer"], json.loads(values[last - 2]["at"])) == ("c", [1, 2])
    assert values[last]["__err__"] == "bad_envelope@0"

    assert "Order" in json.dumps(json.loads(run("schema", "show", topic, "--json", "--config", config)))
    lines = run("replay", topic, "--decode", "--config", config).removesuffix("\n").split("\n")
    assert [line.partition(',"timestamp"')[0].rpartition(":")[2] for line in lines] == [*map(str, range(len(records)))]
    assert json.loads(lines[0])["value"] == GOOD

    fresh = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(fresh), [topic]).run()
    assert ledger(fresh, topic) == ledger(config, topic)
    assert from_archive(fresh, topic, 1) == records


def test_inferred_schema_is_archived_and_extended(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic(partitions=2)
    file = tmp_path / "click.schema.json"
    clicks = [(number, f"/{number}", number / 4) for number in range(40)]
    texts = [json.dumps({"id": number, "page": page, "ms": ms}).encode() for number, page, ms in clicks]
    stack.produce(topic, *({"value": text, "partition": index % 2} for index, text in enumerate(texts)))
    answer = json.loads(
        run("schema", "infer", topic, "--output", file, "--config", stack.config({topic: {}}), "--records", "20")
    )
    assert (answer["event"], answer["sampled"], answer["kept_raw"]) == ("schema_inferred", 20, 0)
    config = stack.config({topic: {"value": {"format": "json", "schema": str(file)}}})
    archive_once(config, topic, engine=InlineEngine())
    rows = read(stack, config, topic).column("val").to_pylist()
    assert sorted((row["id"], row["page"], row["ms"]) for row in rows) == clicks
    assert {row["__raw__"] for row in rows} == {None}

    stack.produce(topic, {"value": b'{"id": 40, "page": "/", "ms": 2, "referrer": {"host": "h"}}'})
    newer = tmp_path / "newer.schema.json"
    run("schema", "infer", topic, "--output", newer, "--config", config)
    assert list(json.loads(newer.read_text())["properties"]) == ["id", "page", "ms", "referrer"]
    changes = json.loads(run("schema", "diff", topic, "--descriptors", newer, "--config", config))["changes"]
    assert {change["kind"] for change in changes} == {"added"}
    newer.rename(file)
    archive_once(config, topic, engine=InlineEngine())
    assert from_archive(config, topic, 2) == from_kafka(stack, topic, 2)
    newest = [row["referrer"] for row in read(stack, config, topic).column("val").to_pylist() if row["id"] == 40]
    assert [row["host"] for row in newest] == ["h"]
