"""Topics behind a proxy with Redpanda's answers: no topic ids, older requests, epochs that are repeated."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from kafka.protocol.consumer import FetchRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import MetadataRequest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.errors import DataLoss
from tests.support.archive.job_runs import archive_once, numbered, run
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.kafka.redpanda_proxy import RedpandaProxy, redpanda_proxy
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration


@pytest.fixture
def redpanda(stack: Stack) -> Iterator[RedpandaProxy]:
    with redpanda_proxy(stack.bootstrap_servers) as proxy:
        yield proxy


def test_later_runs_fetch_what_is_new(stack: Stack, redpanda: RedpandaProxy) -> None:
    topic = stack.topic(partitions=2)
    config = stack.config({topic: {}}, kafka=redpanda.options)
    stack.produce(topic, *({"value": bytes(1_000), "partition": n % 2} for n in range(4_000)), compression_type="none")
    assert archive_once(config).records == 4_000
    before = redpanda.fetched
    assert archive_once(config).records == 0
    assert redpanda.fetched == before
    stack.produce(topic, *numbered(range(10), partitions=2))
    assert archive_once(config).records == 10
    assert redpanda.fetched - before < 2 * 2 * (1 << 20), "at most 1 MiB of each partition is compared"
    assert from_archive(config, topic, 2) == from_kafka(stack, topic, 2)
    expected = {(MetadataRequest.API_KEY, 8), (FetchRequest.API_KEY, 11), (OffsetForLeaderEpochRequest.API_KEY, 4)}
    assert expected <= redpanda.requests


def test_check_names_the_lack_of_topic_ids_alone(stack: Stack, redpanda: RedpandaProxy) -> None:
    topic = stack.topic()
    config = stack.config({topic: {}}, kafka=redpanda.options)
    stack.produce(topic, *numbered(range(10)))
    archive_once(config)
    stack.produce(topic, *numbered(range(10)))
    checks = json.loads(CliRunner().invoke(app, ["check", "--no-spark", "--config", str(config)]).stdout)["checks"]
    bad = {
        check["subject"]: check["outcome"] for check in checks if check["part"] == "Kafka" and check["outcome"] != "ok"
    }
    assert bad == {"topic ids": "warning"}
    shown = json.loads(CliRunner().invoke(app, ["status", "--json", "--config", str(config)]).stdout)
    (partition,) = shown["topics"][0]["partitions"]
    assert (partition["problem"], partition["proves_epochs"]) == (None, True)


def test_a_recreated_longer_topic_is_found(stack: Stack, redpanda: RedpandaProxy) -> None:
    """Neither a topic id nor the epoch differs, and the log has all offsets that are archived."""
    topic = stack.topic()
    config = stack.config({topic: {}}, kafka=redpanda.options)
    stack.produce(topic, *numbered(range(10)))
    archive_once(config)
    stack.delete_topic(topic)
    stack.topic(name=topic)
    stack.produce(topic, *numbered(range(100, 130)))
    (failure,) = run(config).topics[0].failures
    assert isinstance(failure[1], DataLoss)
    assert failure[1].context["differs"] == "other records than archived: [0, 10)"
