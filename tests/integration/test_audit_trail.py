"""The audit trail on the real stack: one entry for each act, whatever is killed and whoever works at once."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from archiver.audit.folder import TrailFolder
from archiver.config import load_config
from archiver.storage.journal import Journal
from catalog.registry import Registry
from tests.support.engine.killed_jobs import EACH, PARTITIONS, archive, assert_each_once, produce
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

KILLED = -9


def entries(config: Path) -> list[dict[str, Any]]:
    """The trail's entries as the store has them, each held against the hash of the one before."""
    settings = load_config(config)
    with Registry(settings.registry.dsn) as registry:
        (topic,) = registry.topics.every()
        assert registry.audit.waiting(topic) == ()
        head = registry.audit.head(topic)
    assert head is not None
    found = Journal.of(settings).named(topic.table, head.table_uuid)
    assert found.trail is not None
    read, before = [], "0" * 64
    for _, line in TrailFolder(path=found.trail, objects=found.objects).lines():
        value = json.loads(line)
        assert value["prev"] == before
        before = hashlib.sha256(line).hexdigest()
        read.append(value)
    assert [each["seq"] for each in read] == list(range(1, len(read) + 1))
    assert (head.entries, head.last_hash) == (len(read), before)
    return read


def kinds(config: Path) -> list[str]:
    return [each["act"] for each in entries(config)]


@pytest.mark.parametrize("point", ["after_commit", "audit_recorded", "audit_written"])
def test_a_kill_between_the_commit_and_its_entry_leaves_one_entry(stack: Stack, point: str) -> None:
    topic = stack.topic(PARTITIONS)
    config = stack.config({topic: {}}, audit={"principal": "ops@example.com"})
    produce(stack, topic, 0)
    assert archive(config).returncode == 0
    produce(stack, topic, EACH)
    assert archive(config, f"{point}:kill").returncode == KILLED

    assert archive(config).returncode == 0

    assert_each_once(stack, config, topic, 2 * EACH)
    found = entries(config)
    appended = [each for each in found if each["act"] == "append"]
    assert [each["act"] for each in found[:2]] == ["create", "evolve"]
    assert sum(each["details"]["rows"] for each in appended) == 2 * EACH * PARTITIONS
    assert all(each["by"]["principal"] == "ops@example.com" for each in found)
    snapshots = stack.catalog().load_table(load_config(config).topic(topic).table).metadata.snapshots
    assert [each["details"]["snapshot_id"] for each in appended] == [str(each.snapshot_id) for each in snapshots]
