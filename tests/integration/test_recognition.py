"""Schemas that don't fit are reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from google.protobuf import message_factory
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.errors import UnrecognizedHalted
from archiver.ingest.events import JobEvent, SchemaChanged, SchemaDoubted
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.ingest.topic.acceptance import AcceptedLosses
from catalog.errors import WouldBecomeRaw
from catalog.recognition import Doubt, Fit
from schema_mapping.columns.evolution import ChangeKind
from tests.support.archive.job_runs import archive_once, places, read, run, schema, without_registry
from tests.support.engine.inline_engine import InlineEngine
from tests.support.schemas.proto_text import descriptor_of
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

ORDER: Any = message_factory.GetMessageClass(
    descriptor_of("message M { string id = 1; int64 cents = 2; string note = 3; }")
)
KNOWN = "string id = 1; int64 cents = 2;"
TRANSFER = "fixed64 from = 1; fixed32 amount = 2;"
ALL = f"{KNOWN} string note = 3;"


def orders(count: int, **fields: Any) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"value": ORDER(id=f"order-{number}", cents=number + 1, **fields).SerializeToString(), "key": b"k"}


def watched(config: Path, **options: Any) -> tuple[JobReport, list[JobEvent]]:
    events: list[JobEvent] = []
    return ArchiveJob(load_config(config), None, events.append, engine=InlineEngine(), **options).run_once(), events


def status(config: Path, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["status", "--config", str(config), "--json", *arguments])
    assert done.exit_code == exit_code, done.output
    return {topic["topic"]: topic for topic in json.loads(done.stdout)["topics"]}


def test_a_producer_ahead_of_its_schema_is_told_everywhere(stack: Stack, tmp_path: Path) -> None:
    topic, raw = stack.topic(), stack.topic()
    config = stack.config({topic: {"value": schema(tmp_path, KNOWN)}, raw: {}})
    stack.produce(topic, *orders(100, note="zz"))
    stack.produce(raw, {"value": b"x"})
    report, events = watched(config)
    assert report.succeeded
    fits = {topic.topic: topic.recognition.parts for topic in report.topics}
    fit = fits[topic]["value"]
    assert (fit.values, fit.failed, fit.raw, fit.unknown, fit.unknown_bytes, fit.blank) == (100, 0, 0, 100, 400, 0)
    assert fits[topic].keys() == {"value"}, "keys are raw"
    assert fits[raw] == {}
    assert {topic.topic: topic.raw_share for topic in report.topics} == {topic: 0.0, raw: 0.0}
    assert [event for event in events if isinstance(event, SchemaDoubted)] == [
        SchemaDoubted(topic=topic, part="value", fit=fit, doubt=Doubt.UNKNOWN)
    ]
    shown = status(config)
    assert Fit.from_json(shown[topic]["recognition"]["value"]) == fit
    assert (shown[topic]["doubts"], shown[raw]["doubts"]) == ({"value": "unknown"}, {})
    assert (shown[raw]["recognition"], shown[raw]["uncounted_records"]) == ({}, 0)
    text = CliRunner().invoke(app, ["status", "--no-json", "--config", str(config)], terminal_width=200)
    assert text.exit_code == 0
    assert "schema in doubt" in text.stdout
    assert f"archiver reprocess {topic} --unrecognized" in " ".join(text.stdout.split())

    rebuilt = without_registry(stack, config, with_journal=True)
    assert CliRunner().invoke(app, ["registry", "rebuild", "--config", str(rebuilt)]).exit_code == 0
    assert Fit.from_json(status(rebuilt)[topic]["recognition"]["value"]) == fit
    bare = without_registry(stack, config, with_journal=False)
    assert CliRunner().invoke(app, ["registry", "rebuild", "--config", str(bare)]).exit_code == 0
    assert Fit.from_json(status(bare)[topic]["recognition"]["value"]) == fit, "the footers have it"


def test_the_schema_of_another_message_is_doubted(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": schema(tmp_path, TRANSFER)}})
    stack.produce(topic, *orders(20))
    _, events = watched(config)
    (doubted,) = (event for event in events if isinstance(event, SchemaDoubted))
    assert (doubted.doubt, doubted.fit.blank) == (Doubt.BLANK, 20)
    assert doubted.fit.byte_share == 1.0


def test_a_topic_may_ignore_it(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": schema(tmp_path, KNOWN), "on_unrecognized": "ignore"}})
    stack.produce(topic, *orders(10, note="zz"))
    report, events = watched(config)
    assert not [event for event in events if isinstance(event, SchemaDoubted)]
    assert report.topics[0].recognition.value.unknown == 10
    assert status(config)[topic]["doubts"] == {}


def test_halt_stops_before_the_unknown_field_until_it_is_known(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": schema(tmp_path, KNOWN), "on_unrecognized": "halt"}})
    stack.produce(topic, *orders(5))
    archive_once(config)
    stack.produce(topic, *orders(1), *orders(3, note="zz"))
    ((partition, error),) = run(config).topics[0].failures
    assert isinstance(error, UnrecognizedHalted)
    assert (partition, error.context["offset"]) == (0, 6)
    assert all(offset < 6 for _, offset in places(read(stack, config, topic)))
    schema(tmp_path, ALL)
    archive_once(config)
    assert len(places(read(stack, config, topic))) == 9


def test_a_new_schema_version_is_told_once_with_what_it_changes(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": schema(tmp_path, KNOWN)}})
    stack.produce(topic, *orders(1))
    _, first = watched(config)
    schema(tmp_path, ALL)
    stack.produce(topic, *orders(1))
    _, second = watched(config)
    _, third = watched(config)
    reported = [[event for event in events if isinstance(event, SchemaChanged)] for events in (first, second, third)]
    assert reported[0] == reported[2] == []
    ((change,),) = (version.changes for version in reported[1])
    assert (reported[1][0].version, change.kind, change.column) == (2, ChangeKind.ADDED, "val.note")


def test_a_typed_topic_becomes_raw_only_if_that_is_accepted(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": schema(tmp_path, KNOWN)}})
    stack.produce(topic, *orders(3))
    archive_once(config)
    typed = config.read_text()
    config.write_text("\n".join(line for line in typed.splitlines() if not line.startswith('"value"')))
    stack.produce(topic, *orders(3))
    ((partition, error),) = run(config).topics[0].failures
    assert partition is None
    assert isinstance(error, WouldBecomeRaw)
    assert "--accept-raw" in error.message
    assert len(places(read(stack, config, topic))) == 3
    assert (
        ArchiveJob(load_config(config), None, engine=InlineEngine(), accepts=AcceptedLosses(raw=True))
        .run_once()
        .succeeded
    )
    stack.produce(topic, *orders(3))
    archive_once(config)
    rows = read(stack, config, topic).column("val").to_pylist()
    assert [row["__raw__"] is not None for row in rows].count(True) == 6


def test_what_an_older_archiver_archived_is_uncounted(stack: Stack, tmp_path: Path) -> None:
    topic = stack.topic()
    config = stack.config({topic: {"value": schema(tmp_path, KNOWN)}})
    stack.produce(topic, *orders(4))
    archive_once(config)
    with psycopg.connect(load_config(config).registry.dsn) as connection:
        connection.execute("UPDATE files SET recognition = NULL")
    shown = status(config)[topic]
    assert (shown["recognition"], shown["uncounted_records"], shown["problem"]) == ({}, 4, None)
