"""An Avro topic of Confluent's serializer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.engine.spark import SparkEngine
from archiver.upkeep.rebuild.job import Rebuild
from catalog.registry import Registry
from schema_mapping import LedgerState
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_pyiceberg, rows_of_spark
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves sockets of collect() open
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Confluent's client
]

LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "placed", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
    {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "notes", "type": {"type": "array", "items": ["null", "string"]}},
    {"name": "lines", "type": {"type": "map", "values": LINE}},
    {"name": "payment", "type": ["null", "string", "int"]},
]
OLD = {"type": "record", "name": "Order", "namespace": "shop", "fields": [*FIELDS, {"name": "who", "type": "string"}]}
NEW = {**OLD, "fields": [*FIELDS, {"name": "customer", "type": ["null", "string"], "aliases": ["who"]}]}
FORMAT = {"format": "avro", "wire_format": "confluent"}


def order(number: int, **more: Any) -> dict[str, Any]:
    common = {"id": number, "placed": 1_700_000_000_000 + number, "total": b"\x04\xd2", "notes": ["a", None]}
    return common | {"lines": {"x": {"sku": f"s{number}"}}, "payment": ("int", number) if number % 2 else None} | more


def serialized(url: str, topic: str, schema: Any, part: MessageField, values: list[Any]) -> list[bytes]:
    client = SchemaRegistryClient({"url": url})
    serializer = AvroSerializer(client, json.dumps(schema), conf={"auto.register.schemas": True})
    return [serializer(value, SerializationContext(topic, part)) for value in values]


def ledger(config: Path, topic: str) -> LedgerState:
    with Registry(load_config(config).registry.dsn) as registry:
        return registry.ledger.load(next(row for row in registry.topics.every() if row.topic == topic))


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_avro_topic_end_to_end(stack: Stack, schema_registry: str, engine: SparkEngine) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"key": FORMAT, "value": FORMAT}}, schema_registry={"url": schema_registry})
    keys = serialized(schema_registry, topic, "long", MessageField.KEY, [1, 2, 3])
    old = serialized(schema_registry, topic, OLD, MessageField.VALUE, [order(n, who=f"w{n}") for n in (1, 2)])
    stack.produce(topic, *({"key": key, "value": value} for key, value in zip(keys, old, strict=False)))
    stack.produce(topic, {"key": keys[2], "value": None}, {"value": b"no Avro"})
    archive_once(config, topic, engine=InlineEngine())
    new = serialized(schema_registry, topic, NEW, MessageField.VALUE, [order(n, customer=f"c{n}") for n in (3, 4)])
    stack.produce(topic, {"value": new[0]}, {"value": old[0]}, {"value": new[1]}, {"value": old[1] + b"more"})
    archive_once(config, topic, engine=InlineEngine())

    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
    table = load_config(config).topic(topic).table
    rows = rows_of_pyiceberg(stack, table)
    assert len(rows) == 8
    assert rows_of_spark(engine, table) == rows
    assert rows_of_duckdb(stack, table) == rows
    scanned = stack.catalog().load_table(table).scan().to_arrow().to_pylist()
    values = [row["val"] for row in sorted(scanned, key=lambda row: row["kafka"]["offset"]) if row["val"]]
    assert [value["customer"] for value in values] == ["w1", "w2", None, "c3", "w1", "c4", "w2"]
    assert [value["__raw__"] is None for value in values] == [True, True, False, True, True, True, False]
    assert [value["__err__"] for value in values if value["__err__"]] == ["bad_envelope@0"]
    assert values[3]["payment"]["int"] == 3

    shown = json.loads(run("schema", "show", topic, "--json", "--config", config))
    assert "shop.Order" in json.dumps(shown)
    decoded = [json.loads(line) for line in run("replay", topic, "--decode", "--config", config).splitlines()]
    assert [line["offset"] for line in decoded] == list(range(8))
    assert any('"c3"' in json.dumps(line) or "c3" in json.dumps(line) for line in decoded)

    before = ledger(config, topic)
    fresh = config.with_name("rebuilt.toml")
    fresh.write_text(
        config.read_text().replace(json.dumps(load_config(config).registry.dsn), json.dumps(stack.database()))
    )
    Rebuild(load_config(fresh), [topic]).run()
    assert ledger(fresh, topic) == before
    assert from_archive(fresh, topic, 1) == from_kafka(stack, topic, 1)
