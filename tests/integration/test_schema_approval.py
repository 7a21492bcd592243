"""A breaking schema change waits for `archiver schema approve`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.errors import SchemaChangeWaits
from archiver.fault_points import VARIABLE, FaultPoint
from archiver.files.recognition import UNAPPROVED_SCHEMA
from archiver.upkeep.reprocess.job import Reprocess
from tests.support.archive.job_runs import archive_once, read, run
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack, to_toml

pytestmark = pytest.mark.integration

HEAD = 'syntax = "proto3"; package t; '
FIRST = HEAD + "message M { int64 total_cents = 1; string name = 2; }"
SECOND = HEAD + "message M { string total_cents = 1; string name = 2; string coupon = 3; }"


def value_of(text: str, **fields: Any) -> bytes:
    message: Any = GetMessageClass(descriptor_of(text))
    return bytes(message(**fields).SerializeToString(deterministic=True))


def command(config: Path, *words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, [*words, "--config", str(config), "--json"])
    assert done.exit_code == code, done.stdout + done.stderr
    return json.loads(done.stdout or done.stderr)


def versions(config: Path, topic: str) -> list[int]:
    return [version["version"] for version in command(config, "schema", "history", topic)["versions"]]


@pytest.fixture
def topic(stack: Stack, tmp_path: Path) -> tuple[Path, str, Path]:
    proto = tmp_path / "m.proto"
    proto.write_text(FIRST)
    name = stack.topic()
    value = {"format": "protobuf", "message": "t.M", "proto": str(proto)}
    config = stack.config({name: {"value": value, "on_schema_change": "compatible"}})
    stack.produce(name, {"value": value_of(FIRST, total_cents=100, name="a")})
    archive_once(config, name)
    return config, name, proto


def test_breaking_change_waits_for_approval(stack: Stack, topic: tuple[Path, str, Path]) -> None:
    config, name, proto = topic
    proto.write_text(SECOND)
    stack.produce(
        name,
        {"value": value_of(FIRST, total_cents=200, name="b")},
        {"value": value_of(SECOND, total_cents="3.00", name="c")},
        {"value": value_of(SECOND, name="d", coupon="X")},
    )
    archive_once(config, name)
    assert versions(config, name) == [1]
    rows = sorted(read(stack, config, name).to_pylist(), key=lambda row: row["kafka"]["offset"])
    assert [row["val"]["total_cents"] for row in rows] == [100, 200, None, None]
    assert [row["val"]["__err__"] for row in rows] == [None, None, UNAPPROVED_SCHEMA, UNAPPROVED_SCHEMA]
    assert from_archive(config, name, 1) == from_kafka(stack, name, 1)
    status = command(config, "status", name, code=1)["topics"][0]
    assert status["recognition"]["value"]["unapproved"] == 2
    assert status["schema_change_waits"]["kind"] == "SchemaChangeWaits"
    assert f"`archiver schema approve {name}`" in status["schema_change_waits"]["message"]
    assert status["lag_records"] == 0
    with pytest.raises(SchemaChangeWaits):
        Reprocess(load_config(config), name, engine=InlineEngine()).run()

    assert command(config, "schema", "approve", name, code=2)["error"]["kind"] == "ConsentMissing"
    approved = command(config, "schema", "approve", name, "--yes")
    assert approved["approved"]
    assert [change["kind"] for change in approved["breaking"]] == ["replaced"]
    assert versions(config, name) == [1], "the version is made by the first record that uses it"
    archive_once(config, name)
    assert versions(config, name) == [1]
    assert command(config, "status", name)["topics"][0]["schema_change_waits"] is None

    assert Reprocess(load_config(config), name, engine=InlineEngine()).run().succeeded
    rows = sorted(read(stack, config, name).to_pylist(), key=lambda row: row["kafka"]["offset"])
    assert [row["val"]["total_cents"] for row in rows] == [None, None, "3.00", ""]
    assert [row["val"]["coupon"] for row in rows] == [None, None, "", "X"]
    assert [row["val"]["__err__"] for row in rows] == [None] * 4
    assert from_archive(config, name, 1) == from_kafka(stack, name, 1)
    assert command(config, "status", name)["topics"][0]["recognition"]["value"].get("unapproved", 0) == 0
    columns = {
        column["name"]: column["of"] for column in command(config, "views", name, "--engine", "duckdb")["columns"]
    }
    assert "with the older values of val.total_cents_deleted" in columns["total_cents"]
    assert "val_total_cents" not in columns
    diff = command(config, "schema", "diff", name, "--from", "1", "--to", "2")
    assert {change["kind"] for change in diff["changes"]} == {"replaced", "renamed", "added"}
    assert command(config, "schema", "diff", name, "--from", "1", "--to", "7", code=2)["error"]["kind"] == "ConfigError"


def test_version_is_made_by_its_first_record(stack: Stack, topic: tuple[Path, str, Path]) -> None:
    config, name, proto = topic
    proto.write_text(FIRST.replace("}", "string more = 4; }"))
    archive_once(config, name)
    assert versions(config, name) == [1]
    assert [change["kind"] for change in command(config, "schema", "diff", name)["changes"]] == ["added"]
    stack.produce(name, {"value": value_of(FIRST, name="z")})
    archive_once(config, name)
    assert versions(config, name) == [1, 2]


def test_only_halt_stops_the_topic(stack: Stack, topic: tuple[Path, str, Path]) -> None:
    config, name, proto = topic
    text = config.read_text()
    config.write_text(text.replace('"compatible"', '"halt"'))
    proto.write_text(SECOND)
    archive_once(config, name)
    stack.produce(name, {"value": value_of(SECOND, total_cents="1", name="h")})
    (report,) = run(config, name).topics
    assert isinstance(report.error, SchemaChangeWaits)
    assert read(stack, config, name).num_rows == 1
    assert command(config, "status", name, code=1)["topics"][0]["lag_records"] == 1
    command(config, "schema", "approve", name, "--yes")
    archive_once(config, name)
    assert versions(config, name) == [1, 2]
    assert read(stack, config, name).num_rows == 2
    assert command(config, "status", name)["topics"][0]["recognition"]["value"].get("unapproved", 0) == 0


AVRO = '{"type": "record", "name": "M", "fields": [{"name": "total_cents", "type": "string"}]}'


def test_other_format_stops_new_records_only(
    stack: Stack, topic: tuple[Path, str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, name, _ = topic
    stack.produce(name, {"value": value_of(FIRST, total_cents=200, name="staged")})
    monkeypatch.setenv(VARIABLE, f"{FaultPoint.AFTER_STAGE}:raise")
    assert not run(config, name).succeeded
    monkeypatch.delenv(VARIABLE)
    assert read(stack, config, name).num_rows == 1
    (tmp_path / "m.avsc").write_text(AVRO)
    document = tomllib.loads(config.read_text())
    document["topics"][name]["value"] = {"format": "avro", "schema": str(tmp_path / "m.avsc")}
    config.write_text(to_toml(document))
    archive_once(config, name)
    assert read(stack, config, name).num_rows == 2, "what was staged is committed"
    stack.produce(name, {"value": b"\x061.0"})
    (report,) = run(config, name).topics
    assert isinstance(report.error, SchemaChangeWaits)
    assert "archived as protobuf, and its section names avro: nothing is archived until this" in str(report.error)
    command(config, "schema", "approve", name, "--yes")
    archive_once(config, name)
    assert read(stack, config, name).num_rows == 3
    assert from_archive(config, name, 1) == from_kafka(stack, name, 1)
