"""Kafka with tiered storage: closed segments are in the tier alone, and retention moves first offsets there."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from archiver.errors import DataLoss
from archiver.ingest.job import ArchiveJob, JobReport
from archiver.ingest.topic.acceptance import AcceptedLosses
from archiver.kafka import BrokerClient
from tests.support.archive.job_runs import archive_once, places, read, run
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.engine.inline_engine import InlineEngine
from tests.support.kafka.own_broker import OwnBroker, own_broker
from tests.support.kafka.tiered_storage import TIERED, tiered_settings
from tests.support.servers.stack import Stack
from tests.support.timing.eventually import eventually

pytestmark = pytest.mark.integration

SEGMENTS_SECONDS = 60.0


@dataclass(frozen=True)
class Tiered:
    broker: OwnBroker
    tier: Path

    @property
    def stack(self) -> Stack:
        return self.broker.stack

    def produce(self, topic: str, count: int, *, seed: int) -> None:
        """Records of which three fill a segment."""
        data = random.Random(seed)
        self.stack.produce(topic, *({"value": data.randbytes(300_000)} for _ in range(count)), batch_size=1_000)

    def first(self, topic: str, at: Any = "earliest") -> int:
        with BrokerClient({"bootstrap.servers": self.stack.bootstrap_servers}) as brokers:
            return brokers.list_offsets(topic, [0], at)[0]

    def wait_for_tier(self, topic: str, *, least: int) -> None:
        """Wait until the leader's disk has none of the first `least` offsets."""
        eventually(
            lambda: self.first(topic, "earliest_local") >= least,
            lambda: f"the first local offset is {self.first(topic, 'earliest_local')}, not {least}",
            seconds=SEGMENTS_SECONDS,
            every=0.1,
        )

    def retain(self, topic: str, size: int) -> int:
        """Let the tier keep `size` bytes, and return the first offset after that."""
        before = self.first(topic)
        entry = ConfigEntry("retention.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        self.stack.admin.incremental_alter_configs([resource])[resource].result(30)
        eventually(lambda: self.first(topic) > before, f"{topic} loses records", seconds=SEGMENTS_SECONDS, every=0.1)
        return self.first(topic)


@pytest.fixture(scope="module")
def tiered(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiered]:
    folder = tmp_path_factory.mktemp("tiered")
    tier = folder / "tier"
    tier.mkdir()
    with own_broker(stack, folder, tiered_settings(tier)) as broker:
        yield Tiered(broker, tier)


def partition_of(config: Path) -> dict[str, Any]:
    shown = CliRunner().invoke(app, ["status", "--json", "--config", str(config)])
    (partition,) = json.loads(shown.stdout)["topics"][0]["partitions"]
    return dict(partition)


def accepting(config: Path, **accepted: bool) -> JobReport:
    return ArchiveJob(load_config(config), accepts=AcceptedLosses(**accepted), engine=InlineEngine()).run_once()


def test_a_topic_in_the_tier_is_archived_whole(tiered: Tiered) -> None:
    stack, topic = tiered.stack, tiered.stack.topic(config=TIERED)
    config = stack.config({topic: {}})
    tiered.produce(topic, 12, seed=1)
    tiered.wait_for_tier(topic, least=9)
    checked = json.loads(CliRunner().invoke(app, ["check", "--no-spark", "--config", str(config)]).stdout)["checks"]
    (described,) = (check for check in checked if check["subject"] == f"topic {topic}" and check["part"] == "Kafka")
    assert (described["outcome"], described["detail"]) == ("ok", "described and read: 1 partition, 12 offsets")
    assert archive_once(config).records == 12
    assert archive_once(config).records == 0
    tiered.produce(topic, 6, seed=2)
    tiered.wait_for_tier(topic, least=15)
    tiered.produce(topic, 1, seed=3)
    assert archive_once(config).records == 7
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
    partition = partition_of(config)
    assert (partition["problem"], partition["proves_epochs"]) == (None, True)


def test_remote_retention_of_archived_records_is_no_loss(tiered: Tiered) -> None:
    stack, topic = tiered.stack, tiered.stack.topic(config=TIERED)
    config = stack.config({topic: {}})
    tiered.produce(topic, 12, seed=4)
    archive_once(config)
    tiered.wait_for_tier(topic, least=9)
    assert 0 < tiered.retain(topic, 2_000_000) <= 9
    assert partition_of(config)["problem"] is None
    tiered.produce(topic, 3, seed=5)
    assert archive_once(config).records == 3
    assert places(read(stack, config, topic)) == [(0, offset) for offset in range(15)]


def test_remote_retention_before_archiving_is_named(tiered: Tiered) -> None:
    stack, topic = tiered.stack, tiered.stack.topic(config=TIERED)
    config = stack.config({topic: {}})
    tiered.produce(topic, 2, seed=6)
    archive_once(config)
    tiered.produce(topic, 10, seed=7)
    tiered.wait_for_tier(topic, least=9)
    first = tiered.retain(topic, 2_000_000)
    assert first > 2
    ((_, error),) = run(config).topics[0].failures
    assert isinstance(error, DataLoss)
    assert error.context["lost"] == f"[2, {first})"
    problem = partition_of(config)["problem"]
    assert (problem["kind"], problem["context"]["lost"]) == ("DataLoss", f"[2, {first})")
    assert accepting(config, gaps=True).succeeded
    assert places(read(stack, config, topic)) == [(0, offset) for offset in (0, 1, *range(first, 12))]


def test_a_tier_that_is_away_loses_nothing(tiered: Tiered) -> None:
    """Its records are neither skipped nor recorded as lost, and come when it is back."""
    stack, topic = tiered.stack, tiered.stack.topic(config=TIERED)
    config = stack.config({topic: {}}, kafka={"socket.timeout.ms": "1000"})
    tiered.produce(topic, 12, seed=8)
    tiered.wait_for_tier(topic, least=9)
    (folder,) = tiered.tier.glob(f"*/{topic}-*")
    away = folder.with_name("away")
    folder.rename(away)
    try:
        report = accepting(config, unreadable=True, gaps=True)
    finally:
        away.rename(folder)
    assert (report.succeeded, report.records) == (False, 0)
    assert archive_once(config).records == 12
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
