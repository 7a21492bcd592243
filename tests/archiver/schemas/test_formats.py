"""A format of the tests, everywhere."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archiver.config.formats import FormatConfig, ProtobufFormat, RawFormat
from archiver.config.model import SchemaRegistrySection, TopicConfig
from archiver.errors import BadSchema, ConfigError, SchemaRegistryUnavailable
from archiver.ingest.task.work import translate_range
from archiver.schemas import FORMATS, Formats, TopicSchemas, mapping_options
from archiver.schemas.format_settings import ProposedFile
from archiver.schemas.registry.client import client_of
from archiver.schemas.registry.envelope import UNKNOWN_SCHEMA_ID, write_id
from schema_mapping import LedgerState, SourceSchema, assign, row_mapping_from_text
from schema_mapping.columns.options import NEW_TABLES
from schema_mapping.formats import MODULES, format_called
from tests.support.kafka.logs import Bench, LogInMemory, batch
from tests.support.kafka.record_batches import Record
from tests.support.schemas.fake_registry import FakeRegistry
from tests.support.schemas.fixed_width import FixedSchema, record
from tests.support.schemas.fixed_width_settings import KIND, FixedWidthSection, FixedWidthSettings
from tests.support.schemas.shop_schemas import MONEY, order

TYPES = {"id": "int", "lot": "long"}
SCHEMA = FixedSchema.of(**TYPES)
WITH_FIXED = Formats((*FORMATS.entries, FixedWidthSettings()))
PROTOBUF_KEY = ProtobufFormat(format="protobuf", wire_format="confluent")


def topic(**parts: object) -> TopicConfig:
    return TopicConfig(name="orders", table="lake.orders").model_copy(update=parts)


def register(registry: FakeRegistry) -> tuple[int, int]:
    return registry.register("orders-key", MONEY), registry.register("orders-value", json.dumps(TYPES), kind=KIND)


def test_archive_and_replay_a_new_format(registry: FakeRegistry, tmp_path: Path) -> None:
    key_id, value_id = register(registry)
    config = topic(key=PROTOBUF_KEY, value=FixedWidthSection())
    schemas = TopicSchemas.read(config, SchemaRegistrySection(url=registry.url), formats=WITH_FIXED)
    assert schemas.value == SCHEMA
    row = assign(LedgerState(), key=schemas.key, value=schemas.value, options=mapping_options(config)).row

    keys = [write_id(key_id) + b"\x00\x08\x07"] * 4
    body = record(SCHEMA, 5 << 24, 2**40)
    values = [write_id(value_id) + body, write_id(value_id) + b"short", write_id(9) + body, body]
    log = [batch(10, *(Record(key=key, value=value) for key, value in zip(keys, values, strict=True)))]
    task = Bench(folder=tmp_path, source=LogInMemory(log=log), row=row).task(10, 14)
    target = replace(task.target, key_envelope=schemas.key_envelope, value_envelope=schemas.value_envelope)
    result = translate_range(pickle.loads(pickle.dumps(replace(task, target=target))))

    assert result.error is None
    table = pq.read_table(result.ranges[0].file.path.removeprefix("file://"))
    kept = row_mapping_from_text(row.text)
    assert encoded(kept.key, table, "key") == keys
    assert encoded(kept.value, table, "val") == values
    rows = table["val"].to_pylist()
    assert [(row["id"], row["lot"], row["__err__"]) for row in rows] == [
        (5 << 24, 2**40, None),
        (None, None, "wrong_length@0"),
        (None, None, UNKNOWN_SCHEMA_ID),
        (None, None, "bad_envelope@0"),
    ]


def encoded(mapping: object, table: pa.Table, column: str) -> list[bytes]:
    return mapping.encode(table[column].combine_chunks().cast(mapping.arrow_type)).to_pylist()


def test_kept_schemas_replace_a_registry_that_is_down(registry: FakeRegistry) -> None:
    key_id, value_id = register(registry)
    section = SchemaRegistrySection(url=registry.url, timeout="100ms")
    config = topic(key=PROTOBUF_KEY, value=FixedWidthSection())
    before = TopicSchemas.read(config, section, formats=WITH_FIXED)
    assert before.schema_registry_down is None
    client_of.cache_clear()
    registry.down = True
    after = TopicSchemas.read(config, section, before.news, formats=WITH_FIXED)
    assert (after.key, after.value) == (before.key, before.value)
    assert isinstance(after.schema_registry_down, SchemaRegistryUnavailable)
    values = pa.array([write_id(value_id) + record(SCHEMA, 1, 2)], pa.binary())
    assert after.value_envelope.read(values).errors == {}
    keys = pa.array([write_id(key_id) + b"\0"], pa.binary())
    assert after.key_envelope.read(keys).which.tolist() == [0]


def test_a_kept_schema_of_another_kind_is_not_used(registry: FakeRegistry) -> None:
    register(registry)
    section = SchemaRegistrySection(url=registry.url, timeout="100ms")
    before = TopicSchemas.read(topic(value=FixedWidthSection()), section, formats=WITH_FIXED)
    client_of.cache_clear()
    registry.down = True
    with pytest.raises(SchemaRegistryUnavailable, match="nothing is known yet"):
        TopicSchemas.read(topic(value=PROTOBUF_KEY), section, before.news, formats=WITH_FIXED)


def test_a_subject_of_another_kind_is_named(registry: FakeRegistry) -> None:
    order(registry)
    section = SchemaRegistrySection(url=registry.url)
    with pytest.raises(BadSchema, match="the subject's schema is PROTOBUF, not fixed width"):
        TopicSchemas.read(topic(value=FixedWidthSection()), section, formats=WITH_FIXED)


def test_every_section_of_the_configuration_has_a_format() -> None:
    sections = get_args(get_args(FormatConfig)[0])
    assert {get_args(section.model_fields["format"].annotation)[0] for section in sections} == {*FORMATS.names}
    for entry in FORMATS.entries:
        assert type(format_called(entry.name)).__module__ in MODULES


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(ConfigError, match=r"called 'fixed_width'.*known=\['protobuf', 'avro', 'json', 'raw'\]"):
        TopicSchemas.read(topic(value=FixedWidthSection(file=Path("x.fixed"))))


def test_a_schema_file_is_read_from_the_settings(tmp_path: Path) -> None:
    (tmp_path / "trade.fixed").write_text(json.dumps(TYPES))
    section = FixedWidthSection(file=Path("trade.fixed")).anchored(tmp_path)
    schemas = TopicSchemas.read(topic(value=section), formats=WITH_FIXED)
    assert (schemas.key, schemas.value) == (None, SCHEMA)
    assert schemas.key_envelope is schemas.value_envelope is None


def test_the_limits_of_the_wider_part_count() -> None:
    narrow = ProtobufFormat(format="protobuf", wire_format="confluent", max_depth=3, max_columns=20)
    assert mapping_options(topic(value=FixedWidthSection())) == replace(NEW_TABLES, max_depth=1, max_columns=100)
    both = mapping_options(topic(key=narrow, value=FixedWidthSection()))
    assert both == replace(NEW_TABLES, max_depth=3, max_columns=100)


def test_a_proposed_file_has_a_format(tmp_path: Path) -> None:
    fixed, proto = tmp_path / "trade.fixed", tmp_path / "trade.proto"
    fixed.write_text(json.dumps(TYPES))
    proto.write_text('syntax = "proto3"; message Trade { int32 id = 1; }')
    assert WITH_FIXED.next_schema(ProposedFile(path=fixed), RawFormat()) == SCHEMA
    assert WITH_FIXED.next_schema(ProposedFile(path=fixed), FixedWidthSection()) == SCHEMA
    read = WITH_FIXED.next_schema(ProposedFile(path=proto, message="Trade"))
    assert isinstance(read, SourceSchema)
    with pytest.raises(ConfigError, match="the topic's values aren't Protobuf"):
        WITH_FIXED.next_schema(ProposedFile(path=proto, message="Trade", topic="orders", today=SCHEMA))
    with pytest.raises(ConfigError, match="has no schema yet: name the message with --message"):
        WITH_FIXED.next_schema(ProposedFile(path=proto, topic="orders"))
