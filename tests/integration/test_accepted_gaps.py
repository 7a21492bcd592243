"""Accepted gaps, also in rebuilt registries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.ingest.job import ArchiveJob
from archiver.ingest.topic.acceptance import AcceptedLosses
from archiver.upkeep.rebuild.job import Rebuild
from archiver.upkeep.reconcile import reconcile
from tests.support.archive.job_runs import archive_once, without_registry
from tests.support.archive.readers import from_archive
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

GAPS = ((10, 15), (20, 25))
KEPT = [n for n in range(35) if not any(start <= n < end for start, end in GAPS)]


@pytest.fixture
def gapped(stack: Stack) -> tuple[Path, str]:
    topic = stack.topic()
    config = stack.config({topic: {}})
    produce(stack, topic, range(10))
    archive_once(config, topic, engine=InlineEngine())
    away = config.with_name("away.toml")
    uri = json.dumps(load_config(config).catalog["uri"])
    away.write_text(config.read_text().replace(uri, '"http://127.0.0.1:1"'))
    for (_, end), last in zip(GAPS, (20, 30), strict=True):
        produce(stack, topic, range(last - 10, last))
        stack.admin.delete_records([TopicPartition(topic, 0, end)])[TopicPartition(topic, 0)].result(30)
        archive(away, topic)
    (done,) = reconcile(load_config(config), [topic])
    assert (done.error, done.landed, done.waiting) == (None, 4, 0)
    return config, topic


def produce(stack: Stack, topic: str, numbers: range) -> None:
    stack.produce(topic, *({"value": b"%d" % number} for number in numbers))


def archive(config: Path, topic: str) -> None:
    report = ArchiveJob(
        load_config(config), [topic], accepts=AcceptedLosses(gaps=True), engine=InlineEngine()
    ).run_once()
    ((_, error),) = report.topics[0].failures
    assert type(error).__name__ == "CatalogUnreachable", error


def status(config: Path, topic: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["status", topic, "--json", "--config", str(config)])
    (row,) = json.loads(done.stdout)["topics"]
    return row


def test_gaps_staged_while_the_catalog_was_away_are_told_apart(stack: Stack, gapped: tuple[Path, str]) -> None:
    config, topic = gapped
    assert status(config, topic)["lost_offsets"] == 10
    summary = stack.catalog().load_table(load_config(config).topic(topic).table).current_snapshot().summary
    assert summary["archiver.ranges"] == '{"0":[10,30]}'
    assert summary["archiver.lost"] == '{"0":[10,15,20,25]}'


@pytest.mark.parametrize("with_journal", [True, False])
def test_a_registry_made_again_knows_the_gaps(stack: Stack, gapped: tuple[Path, str], *, with_journal: bool) -> None:
    config, topic = gapped
    fresh = without_registry(stack, config, with_journal=with_journal)
    (done,) = Rebuild(load_config(fresh), [topic]).run()
    assert (done.from_journal, done.ranges) == (with_journal, 5)
    for _ in range(2):
        assert status(fresh, topic)["lost_offsets"] == 10
        assert Rebuild(load_config(fresh), [topic]).run()[0].ranges == 0
    produce(stack, topic, range(30, 35))
    archive_once(fresh, topic, engine=InlineEngine())
    assert [int(record.value or b"") for record in from_archive(fresh, topic, 1)] == KEPT
    (partition,) = status(fresh, topic)["partitions"]
    assert (partition["archived_to"], partition["problem"]) == (35, None)
