"""A value format known only to the tests."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.config.model import SchemaRegistrySection, TopicConfig
from archiver.engine.spark import SparkEngine
from archiver.ingest.job import ArchiveJob
from archiver.schemas.topic_schemas import TopicSchemas
from archiver.upkeep.rebuild.job import Rebuild
from catalog.model import TopicRow
from catalog.registry import Registry
from schema_mapping import LedgerState
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.three_engines import rows_of_duckdb, rows_of_pyiceberg, rows_of_spark
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.fixed_width import FixedSchema, record
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves those of collect() open
]

TRADE = FixedSchema.of(id="int", day="date", at="time", price="decimal(9, 2)", tag="fixed[3]", trader="uuid")
WIDER = FixedSchema.of(
    id="int", day="date", at="time", price="decimal(12, 2)", tag="fixed[3]", trader="uuid", lot="long"
)
PLAIN = FixedSchema.of(id="int", day="date", price="decimal(9, 2)")
WIDER_PLAIN = FixedSchema.of(id="long", day="date", price="decimal(12, 2)", lot="int")
TRADER = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


def reading(schema: FixedSchema) -> Callable[..., TopicSchemas]:
    def read(
        config: TopicConfig, section: SchemaRegistrySection | None, *, known: TopicRow | None, registry: Registry
    ) -> TopicSchemas:
        return replace(TopicSchemas.read(config, section), value=schema)

    return read


def archive(config: Path, topic: str, schema: FixedSchema) -> None:
    job = ArchiveJob(load_config(config), [topic], engine=InlineEngine(), read_schemas=reading(schema))
    report = job.run_once()
    assert report.succeeded, report


def ledger(config: Path, topic: str) -> LedgerState:
    with Registry(load_config(config).registry.dsn) as registry:
        return registry.ledger.load(next(row for row in registry.topics.every() if row.topic == topic))


def test_archived_evolved_replayed_and_rebuilt(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic(2)
    config = stack.config({topic: {"value": {"format": "raw"}}})
    old = record(TRADE, 1, 19_700, 3_600_000_001, -123, b"abc", TRADER.bytes)
    new = record(WIDER, 2, 19_701, 7_200_000_000, 123_456_789_012, b"xyz", TRADER.bytes, 2**40)
    stack.produce(topic, {"value": old}, {"value": b"no trade"}, {"value": None, "partition": 1})
    archive(config, topic, TRADE)
    stack.produce(topic, {"value": new}, {"value": old, "partition": 1}, {"value": b""})
    archive(config, topic, WIDER)

    assert from_archive(config, topic, 2) == from_kafka(stack, topic, 2)
    table = stack.catalog().load_table(load_config(config).topic(topic).table)
    assert str(table.schema().find_field("val.price").field_type) == "decimal(12, 2)"
    rows = {row["val"]["id"]: row["val"] for row in table.scan().to_arrow().to_pylist() if row["val"]}
    seen = [(rows[number]["day"], rows[number]["at"], rows[number]["price"], rows[number]["lot"]) for number in (1, 2)]
    assert seen == [
        (date(2023, 12, 9), time(1, 0, 0, 1), Decimal("-1.23"), None),
        (date(2023, 12, 10), time(2, 0), Decimal("1234567890.12"), 2**40),
    ]
    assert (rows[1]["tag"], rows[1]["trader"]) == (b"abc", TRADER)
    assert sorted(
        row["val"]["__raw__"] for row in table.scan().to_arrow().to_pylist() if row["val"] and row["val"]["__err__"]
    ) == sorted([b"no trade", b"", old])

    before = ledger(config, topic)
    assert {entry.path for entry in before.entries if entry.root == "val"} >= {("id",), ("lot",)}
    text = config.read_text().replace(json.dumps(load_config(config).registry.dsn), json.dumps(stack.database()))
    fresh = config.with_name("rebuilt.toml")
    fresh.write_text(text)
    Rebuild(load_config(fresh), [topic]).run()
    assert ledger(fresh, topic) == before
    stack.produce(topic, {"value": new})
    archive(fresh, topic, WIDER)
    assert from_archive(fresh, topic, 2) == from_kafka(stack, topic, 2)
    assert ledger(fresh, topic) == before


def test_engines_read_the_same(stack: Stack, engine: SparkEngine, tmp_path: Path) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": {"format": "raw"}}})
    stack.produce(topic, {"value": record(PLAIN, 1, 19_700, -123)}, {"value": b"?"}, {"value": None})
    archive(config, topic, PLAIN)
    stack.produce(topic, {"value": record(WIDER_PLAIN, 2**40, 19_701, 123_456_789_012, 7)})
    archive(config, topic, WIDER_PLAIN)
    table = load_config(config).topic(topic).table
    ours = rows_of_pyiceberg(stack, table)
    assert len(ours) == 4
    assert rows_of_duckdb(stack, table) == ours
    assert rows_of_spark(engine, table) == ours
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
