"""`archiver check` and `init` beside a real schema registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import requests
from google.protobuf import message_factory
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from archiver.config import load_config
from archiver.config.formats import AvroFormat, ProtobufFormat, RawFormat
from tests.support.archive.job_runs import archive_once
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack, unique

pytestmark = pytest.mark.integration

ORDER = 'syntax = "proto3"; package t; message M { int64 id = 1; string sku = 2; }'
FORMAT = {"format": "protobuf", "wire_format": "confluent"}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def register(url: str, subject: str, text: str, kind: str = "PROTOBUF") -> int:
    body = {"schemaType": kind, "schema": text}
    answer = requests.post(f"{url}/subjects/{subject}/versions", json=body, timeout=30)
    answer.raise_for_status()
    return int(answer.json()["id"])


def enveloped(schema_id: int, **fields: object) -> bytes:
    message = message_factory.GetMessageClass(descriptor_of(ORDER))(**fields)
    return b"\0" + schema_id.to_bytes(4, "big") + b"\0" + message.SerializeToString()


def findings(config: Path) -> tuple[int, dict[tuple[str, str], dict[str, Any]]]:
    done = run("check", "--no-spark", "--config", config)
    return done.exit_code, {(check["part"], check["subject"]): check for check in json.loads(done.stdout)["checks"]}


def test_check_reads_the_schemas_that_topics_need(stack: Stack, schema_registry: str) -> None:
    topic, raw = stack.topic(), stack.topic()
    register(schema_registry, f"{topic}-value", ORDER)
    section = {"url": schema_registry}
    code, checks = findings(stack.config({topic: {"value": FORMAT}, raw: {}}, schema_registry=section))
    assert code == 0, [check for check in checks.values() if check["outcome"] == "failed"]
    about = {subject: check for (part, subject), check in checks.items() if part == "Schema registry"}
    assert {check["outcome"] for check in about.values()} == {"ok"}
    assert about[f"topic {topic}"]["detail"] == "t.M"
    assert schema_registry in about[""]["detail"]
    assert f"topic {raw}" not in about

    code, checks = findings(stack.config({raw: {"value": FORMAT}}, schema_registry=section))
    assert code == 1
    assert checks["Schema registry", ""]["outcome"] == "ok"
    assert checks["Schema registry", f"topic {raw}"]["error"]["kind"] == "UnknownSubject"


def test_init_types_the_topics_whose_schemas_are_registered(stack: Stack, schema_registry: str, tmp_path: Path) -> None:
    prefix = unique("registered")
    values, both, avro, unknown, mixed = (
        stack.topic(name=f"{prefix}.{kind}") for kind in ("values", "both", "avro", "unknown", "mixed")
    )
    ids = {topic: register(schema_registry, f"{topic}-value", ORDER) for topic in (values, both, mixed)}
    key_id = register(schema_registry, f"{both}-key", ORDER)
    other_id = register(schema_registry, f"{avro}-value", '{"type": "string"}', "AVRO")
    stack.produce(values, *({"value": enveloped(ids[values], id=number, sku="a"), "key": b"k"} for number in range(30)))
    stack.produce(both, {"value": enveloped(ids[both], id=1), "key": enveloped(key_id, id=2)}, {"value": None})
    stack.produce(avro, {"value": b"\0" + other_id.to_bytes(4, "big") + b'{"a": 1}'})
    stack.produce(unknown, {"value": enveloped(987_654, id=1)})
    stack.produce(mixed, {"value": enveloped(ids[mixed], id=1)}, {"value": b"no envelope"})

    config = tmp_path / "first.toml"
    base = stack.config({}, schema_registry={"url": schema_registry})
    made = run("init", "--from", base, "--config", config, "--topic", f"{prefix}*")
    assert made.exit_code == 0, made.output
    assert 'value = { format = "protobuf", wire_format = "confluent" }' in config.read_text()
    loaded = load_config(config)
    formats = {
        topic: (type(loaded.topic(topic).key), type(loaded.topic(topic).value))
        for topic in json.loads(made.stdout)["topics"]
    }
    assert formats == {
        values: (RawFormat, ProtobufFormat),
        both: (ProtobufFormat, ProtobufFormat),
        avro: (RawFormat, AvroFormat),
        unknown: (RawFormat, RawFormat),
        mixed: (RawFormat, RawFormat),
    }
    code, checks = findings(config)
    assert code == 0, [check for check in checks.values() if check["outcome"] == "failed"]
    assert checks["Schema registry", f"topic {values}"]["detail"] == "t.M"
    archive_once(config, values, engine=InlineEngine())
    rows = stack.catalog().load_table(loaded.topic(values).table).scan().to_arrow().to_pylist()
    assert sorted((row["val"]["id"], row["val"]["sku"]) for row in rows) == [(number, "a") for number in range(30)]


def test_init_goes_on_without_a_schema_registry_that_is_away(stack: Stack, tmp_path: Path) -> None:
    topic, config = stack.topic(), tmp_path / "first.toml"
    stack.produce(topic, {"value": enveloped(1, id=1)})
    base = stack.config({}, schema_registry={"url": "http://127.0.0.1:1", "timeout": "100ms"})
    made = run("init", "--from", base, "--config", config, "--topic", topic)
    assert made.exit_code == 0, made.output
    assert isinstance(load_config(config).topic(topic).value, RawFormat)
    assert "# value: " in config.read_text(), "why it is archived as bytes"
