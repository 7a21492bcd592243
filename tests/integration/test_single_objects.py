"""A topic of Avro's single-object encoding, with an older schema that is configured late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from fastavro.schema import fingerprint, to_parsing_canonical_form

from archiver.config import load_config
from archiver.setup.findings import Finding
from archiver.setup.value_checks import look_at_values
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.reprocess.job import Reprocess
from tests.support.archive.job_runs import archive_once, without_registry
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.strategies_avro import written
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

OLD: Final = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}]}
NEW: Final = {**OLD, "fields": [*OLD["fields"], {"name": "unit", "type": ["null", "string"]}]}
FORMAT: Final = {"format": "avro", "wire_format": "single_object", "schema": "event.avsc"}


def single_object(schema: Any, value: Any) -> bytes:
    name = fingerprint(to_parsing_canonical_form(schema), "CRC-64-AVRO")
    return b"\xc3\x01" + bytes.fromhex(name) + written(schema, value)


def values_of(stack: Stack, config: Path, topic: str) -> list[dict[str, Any] | None]:
    scanned = stack.catalog().load_table(load_config(config).topic(topic).table).scan().to_arrow().to_pylist()
    return [row["val"] for row in sorted(scanned, key=lambda row: row["kafka"]["offset"])]


def checked(config: Path) -> Finding:
    return next(finding for finding in look_at_values(load_config(config)) if "value" in finding.detail)


def test_late_schema_types_older_values(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": FORMAT}})
    for name, schema in (("event.avsc", NEW), ("event-1.avsc", OLD)):
        (config.parent / name).write_text(json.dumps(schema))
    new, old = single_object(NEW, {"id": 1, "unit": "mm"}), single_object(OLD, {"id": 2})
    stack.produce(topic, {"value": new}, {"value": old}, {"value": b"no object"}, {"value": None}, {"value": new[:-1]})
    assert "1 unknown_fingerprint@2: no schema of the topic has the fingerprint" in checked(config).detail
    archive_once(config, topic, engine=InlineEngine(), accept_raw=True)
    codes = [value and value["__err__"] for value in values_of(stack, config, topic)]
    assert codes == [None, "unknown_fingerprint@2", "bad_envelope@0", None, "truncated@12"]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)

    text = config.read_text()
    assert text.count('"single_object"') == 1
    config.write_text(text.replace('"single_object"', '"single_object", "older_schemas" = ["event-1.avsc"]'))
    archive_once(config, topic, engine=InlineEngine(), accept_raw=True)
    Reprocess(load_config(config), topic, None, engine=InlineEngine()).run()
    values = values_of(stack, config, topic)
    assert [value and value["id"] for value in values] == [1, 2, None, None, None]
    assert [value and value["__err__"] for value in values] == [None, None, "bad_envelope@0", None, "truncated@12"]
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
    rebuilt = without_registry(stack, config, with_journal=True)
    Rebuild(load_config(rebuilt), [topic]).run()
    assert from_archive(rebuilt, topic, 1) == from_kafka(stack, topic, 1)
