"""Avro's single-object encoding: writers by fingerprint, from files and from a subject's versions."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fastavro.schema import fingerprint, to_parsing_canonical_form

from archiver.config.formats import AvroFormat
from archiver.config.model import SchemaRegistrySection, TopicConfig
from archiver.errors import ConfigError, NewerSchema, SchemaRegistryUnavailable
from archiver.schemas import TopicSchemas, decode_values
from archiver.schemas.avro.single_objects import SingleObjects
from schema_mapping import LedgerState, assign
from tests.support.schemas.fake_registry import FakeRegistry, fake_registry
from tests.support.schemas.strategies_avro import written

SUBJECT = "readings-value"


def reading(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "lab.Reading", "fields": [{"name": key, "type": kind} for key, kind in fields]}


OLD = reading(("id", "long"))
NEW = reading(("id", "long"), ("unit", ["null", "string"]))
OTHER = reading(("id", "string"))


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        yield registry


def topic(**value: Any) -> TopicConfig:
    section = {"format": "avro", "wire_format": "single_object", **value}
    return TopicConfig.model_validate({"name": "readings", "table": "kafka.readings", "value": section})


def single_object(schema: Any, value: Any) -> bytes:
    name = fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO")
    return b"\xc3\x01" + bytes.fromhex(name) + written(schema, value)


def rows_of(schemas: TopicSchemas, values: list[bytes | None]) -> pa.StructArray:
    mapping = assign(LedgerState(), value=schemas.value).row.value
    reader = pickle.loads(pickle.dumps(schemas.value_envelope))
    rows = decode_values(mapping, pa.array(values, pa.binary()), reader)
    rows.validate(full=True)
    assert mapping.encode(rows).to_pylist() == values
    return rows


def files_of(folder: Path, *schemas: Any) -> list[str]:
    paths = [folder / f"reading-{number}.avsc" for number in range(len(schemas))]
    for path, schema in zip(paths, schemas, strict=True):
        path.write_text(json.dumps(schema))
    return [str(path) for path in paths]


def from_files(folder: Path, *schemas: Any) -> TopicSchemas:
    first, *older = files_of(folder, *schemas)
    config = topic(schema=first, older_schemas=older)
    TopicSchemas.check(config)
    return TopicSchemas.read(config)


def from_subject(server: FakeRegistry) -> TopicSchemas:
    return TopicSchemas.read(topic(), SchemaRegistrySection(url=server.url))


def test_values_of_a_file_are_columns(tmp_path: Path) -> None:
    schemas = from_files(tmp_path, NEW)
    value = single_object(NEW, {"id": 1, "unit": "mm"})
    rows = rows_of(schemas, [value, None, value])
    assert rows.field("unit").to_pylist() == ["mm", None, "mm"]
    assert rows.field("__prefix__").to_pylist() == [value[:10], None, value[:10]]
    assert rows.field("__raw__").null_count == rows.field("__err__").null_count == 3


def test_older_files_are_writers(tmp_path: Path) -> None:
    schemas = from_files(tmp_path, NEW, OLD)
    values: list[bytes | None] = [single_object(OLD, {"id": 7}), single_object(NEW, {"id": 8, "unit": None})]
    rows = rows_of(schemas, values)
    assert rows.field("id").to_pylist() == [7, 8]
    assert rows.field("__form__").to_pylist() == ["writer_1", None]
    assert rows.field("__raw__").null_count == 2


def test_unknown_and_damaged_values_have_a_code(tmp_path: Path) -> None:
    good = single_object(NEW, {"id": 1, "unit": None})
    values = [single_object(OTHER, {"id": "x"}), good[:9], written(NEW, {"id": 1, "unit": None}), b"", good[:10]]
    rows = rows_of(from_files(tmp_path, NEW), [good, *values, b"\xc3\2" + good[2:]])
    assert rows.field("__err__").to_pylist() == [
        None,
        "unknown_fingerprint@2",
        "bad_envelope@0",
        "bad_envelope@0",
        "bad_envelope@0",
        "truncated@10",
        "bad_envelope@0",
    ]
    assert rows.field("__raw__").to_pylist()[1:] == [*values, b"\xc3\2" + good[2:]]


def test_logical_types_change_no_fingerprint(tmp_path: Path) -> None:
    dated = reading(("id", {"type": "long", "logicalType": "timestamp-millis"}))
    rows = rows_of(from_files(tmp_path, dated, OLD), [single_object(OLD, {"id": 1_000})])
    assert rows.field("id").cast(pa.int64()).to_pylist() == [1_000_000]
    assert rows.field("__raw__").null_count == 1


def test_versions_of_a_subject_are_writers(server: FakeRegistry) -> None:
    server.register(SUBJECT, json.dumps(OLD), kind="AVRO")
    server.register(SUBJECT, json.dumps(NEW), kind="AVRO")
    values: list[bytes | None] = [single_object(NEW, {"id": 1, "unit": "m"}), single_object(OLD, {"id": 2})]
    assert rows_of(from_subject(server), values).field("unit").to_pylist() == ["m", None]


def test_newer_version_waits_for_the_next_opening(server: FakeRegistry) -> None:
    server.register(SUBJECT, json.dumps(OLD), kind="AVRO")
    schemas = from_subject(server)
    server.register(SUBJECT, json.dumps(NEW), kind="AVRO")
    values = [
        single_object(OLD, {"id": 1}),
        single_object(OTHER, {"id": "x"}),
        single_object(NEW, {"id": 2, "unit": ""}),
    ]
    with pytest.raises(NewerSchema, match="the next run opens the topic") as caught:
        rows_of(schemas, [None, *values])
    assert caught.value.context["row"] == 2  # the first that is unknown
    rows = rows_of(from_subject(server), [None, *values])
    assert rows.field("__err__").to_pylist() == [None, None, "unknown_fingerprint@2", None]
    assert rows.field("id").to_pylist() == [None, 1, None, 2]


def test_unknown_fingerprint_waits_while_the_registry_is_down(server: FakeRegistry) -> None:
    server.register(SUBJECT, json.dumps(OLD), kind="AVRO")
    before = from_subject(server)
    server.down = True
    after = TopicSchemas.read(topic(), SchemaRegistrySection(url=server.url), before.news)
    assert rows_of(after, [single_object(OLD, {"id": 5})]).field("id").to_pylist() == [5]
    with pytest.raises(SchemaRegistryUnavailable) as caught:
        rows_of(after, [single_object(OLD, {"id": 5}), single_object(NEW, {"id": 2, "unit": ""})])
    assert caught.value.context["row"] == 1


def test_unapproved_version_has_a_code(server: FakeRegistry) -> None:
    server.register(SUBJECT, json.dumps(OLD), kind="AVRO")
    before = from_subject(server)
    server.register(SUBJECT, json.dumps(NEW), kind="AVRO")
    after = from_subject(server)
    assert before.value_envelope is not None
    reader = before.value_envelope.beside(after.value_envelope)
    envelopes = reader.read(pa.array([single_object(NEW, {"id": 2, "unit": ""})]))
    assert envelopes.errors.keys() == {"unknown_fingerprint@2"}


def test_empty_columns_are_read(tmp_path: Path) -> None:
    reader = from_files(tmp_path, NEW).value_envelope
    assert isinstance(reader, SingleObjects)
    assert reader.read(pa.array([], pa.binary())).errors == {}
    assert reader.read(pa.array([None], pa.binary())).which.tolist() == [-1]
    large = pa.array([b"x" * 3, single_object(NEW, {"id": 3, "unit": None})], pa.large_binary()).slice(1)
    assert np.array_equal(reader.read(large).lengths, [10])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"wire_format": "plain", "schema": "a.avsc", "older_schemas": "b.avsc"}, "only the fingerprint"),
        ({"older_schemas": "b.avsc"}, "goes with wire_format"),
        ({"schema": "a.avsc", "subject": "s"}, "go with wire_format"),
        ({"subject_strategy": "record_name"}, "needs `message`"),
    ],
    ids=str,
)
def test_settings_that_contradict(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        topic(**settings)


def test_bad_older_file_is_named(tmp_path: Path) -> None:
    first, second = files_of(tmp_path, NEW, {"type": "recor"})
    with pytest.raises(ConfigError) as caught:
        TopicSchemas.check(topic(schema=first, older_schemas=second))
    assert caught.value.context["file"] == second


def test_files_need_no_schema_registry() -> None:
    section = {"format": "avro", "wire_format": "single_object"}
    assert AvroFormat.model_validate({**section, "schema": "a.avsc"}).registry_setting is None
    assert AvroFormat.model_validate(section).registry_setting == 'wire_format = "single_object" without `schema`'
    anchored = AvroFormat.model_validate({**section, "schema": "a.avsc", "older_schemas": "b.avsc"}).anchored(
        Path("/x")
    )
    assert anchored.older_schemas == (Path("/x/b.avsc"),)
