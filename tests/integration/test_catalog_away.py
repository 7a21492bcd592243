"""Archiving without the catalog."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.upkeep.reconcile import reconcile
from catalog.errors import CatalogUnreachable
from catalog.model import FileState
from catalog.registry import Registry
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.wrong_schema import PARTITIONS, RIGHT, archived_wrongly, produce, values
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration


def away(config: Path) -> Path:
    path = config.with_name("away.toml")
    path.write_text(config.read_text().replace(json.dumps(load_config(config).catalog["uri"]), '"http://127.0.0.1:1"'))
    return path


def run(config: Path, topic: str) -> JobReport:
    return ArchiveJob(load_config(config), [topic], engine=InlineEngine()).run_once()


def staged(config: Path) -> int:
    with Registry(load_config(config).registry.dsn) as registry:
        return registry.files.counts(registry.topics.every()[0])[FileState.UPLOADED].rows


def test_archiving_goes_on_without_the_catalog(stack: Stack, tmp_path: Path) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    proto.write_text(RIGHT)
    for turn in (2, 3):
        produce(stack, topic, turn)
        report = run(away(config), topic)
        assert isinstance(report.topics[0].error, CatalogUnreachable)
        assert not report.succeeded
        assert staged(config) == (turn - 1) * len(values())
    (done,) = reconcile(load_config(config), [topic])
    assert (done.rows, done.waiting, done.error) == (2 * len(values()), 0, None)
    produce(stack, topic, 4)
    archive_once(config, topic, engine=InlineEngine())
    kafka = from_kafka(stack, topic, PARTITIONS)
    assert len(kafka) == 5 * len(values())
    assert from_archive(config, topic, PARTITIONS) == kafka


def test_a_table_never_loaded_waits(stack: Stack) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}})
    stack.produce(topic, {"value": b"1"})
    report = run(away(config), topic)
    assert isinstance(report.topics[0].error, CatalogUnreachable)
    assert "loaded before" in str(report.topics[0].error)
    assert staged(config) == 0
    archive_once(config, topic, engine=InlineEngine())
