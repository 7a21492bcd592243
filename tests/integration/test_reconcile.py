"""`archiver reconcile`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archiver.config import load_config
from archiver.errors import NotArchived
from archiver.ingest.job import ArchiveJob
from archiver.upkeep.reconcile import reconcile
from catalog.errors import CatalogUnreachable
from catalog.model import FileState
from catalog.registry import Registry
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.archive.wrong_schema import PARTITIONS, RIGHT, archived_wrongly, produce, values
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
def test_what_was_staged_is_committed_with_its_columns(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    config, topic, proto = archived_wrongly(stack, tmp_path)
    proto.write_text(RIGHT)
    produce(stack, topic, 2)
    monkeypatch.setenv("ARCHIVER_FAULT", f"{point}:raise")
    assert not ArchiveJob(load_config(config), [topic], engine=InlineEngine()).run_once().succeeded
    monkeypatch.delenv("ARCHIVER_FAULT")
    proto.unlink()
    without_kafka = config.with_name("without_kafka.toml")
    settings = load_config(config)
    without_kafka.write_text(
        config.read_text().replace(json.dumps(settings.kafka["bootstrap.servers"]), '"127.0.0.1:1"')
    )

    (done,) = reconcile(load_config(without_kafka), [topic])

    assert (done.landed, done.rows, done.waiting, done.error) == (PARTITIONS, len(values()), 0, None)
    kafka = from_kafka(stack, topic, PARTITIONS)
    assert from_archive(config, topic, PARTITIONS) == kafka
    more = stack.catalog().load_table(settings.topic(topic).table).schema().find_field("val.more")
    assert str(more.field_type) == "map<string, int>"
    with Registry(settings.registry.dsn) as registry:
        counts = registry.files.counts(registry.topics.every()[0])
    assert counts[FileState.UPLOADED].ranges == 0
    assert counts[FileState.COMMITTED].rows == len(kafka)
    (again,) = reconcile(load_config(config))
    assert (again.landed, again.waiting, again.error) == (0, 0, None)


def test_a_catalog_that_is_away_is_named(stack: Stack, tmp_path: Path) -> None:
    config, topic, _ = archived_wrongly(stack, tmp_path)
    settings = load_config(config)
    config.write_text(config.read_text().replace(json.dumps(settings.catalog["uri"]), '"http://127.0.0.1:1"'))
    with pytest.raises(CatalogUnreachable):
        reconcile(load_config(config), [topic])


def test_a_topic_that_never_was_archived_is_named(stack: Stack) -> None:
    topic = stack.topic()
    with pytest.raises(NotArchived):
        reconcile(load_config(stack.config({topic: {}})), [topic])
