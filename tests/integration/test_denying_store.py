"""A store that denies unencrypted writes or checksums.

Spark's executors upload in parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.engine.spark import SparkEngine
from catalog.iceberg.s3_writer import PART_BYTES
from tests.support.archive.job_runs import archive_once, run
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.servers.stack import Stack
from tests.support.storage.demanding_store import SSE, Demands
from tests.support.storage.spoiling_proxy import Spoiling, spoiling_proxy

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves sockets of collect() open
]

CASES = {
    "encryption": (Demands(encryption="AES256"), {"s3.sse.type": "s3"}, "s3.sse.type"),
    "checksums": (Demands(checksum_status=501), {"s3.checksums": "when_required"}, "s3.checksums"),
}


@pytest.fixture
def proxy(stack: Stack) -> Iterator[Spoiling]:
    with spoiling_proxy(stack.catalog_properties["s3.endpoint"]) as running:
        yield running


def config_of(stack: Stack, topic: str, proxy: Spoiling, settings: dict[str, str]) -> Path:
    return stack.config({topic: {}}, catalog={"s3.endpoint": proxy.endpoint, **settings})


@pytest.mark.parametrize("case", CASES)
def test_executors_write_as_demanded(stack: Stack, engine: SparkEngine, proxy: Spoiling, case: str) -> None:
    demands, settings, _ = CASES[case]
    topic = stack.topic()
    large = ({"value": bytes(range(256)) * 4_000} for _ in range(3 * PART_BYTES // 1_024_000))
    stack.produce(topic, *large, message_max_bytes=4_000_000)
    config = config_of(stack, topic, proxy, settings)
    proxy.demands = demands
    archive_once(config, topic, engine=engine)
    done = CliRunner().invoke(app, ["check", "--no-spark", "--config", str(config)])
    assert done.exit_code == 0, done.output
    assert proxy.refused == []
    assert proxy.uploads
    assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
    if demands.encryption:
        assert {headers.get(SSE) for headers in proxy.uploads} == {demands.encryption}


@pytest.mark.parametrize("case", CASES)
def test_executors_name_the_setting(stack: Stack, engine: SparkEngine, proxy: Spoiling, case: str) -> None:
    demands, _, name = CASES[case]
    topic = stack.topic()
    stack.produce(topic, {"value": b"x"})
    config = config_of(stack, topic, proxy, {})
    proxy.demands = demands
    done = CliRunner().invoke(app, ["check", "--no-spark", "--config", str(config)])
    assert done.exit_code == 1
    findings = json.loads(done.stdout)["checks"]
    assert all(name in json.dumps(finding) for finding in findings if finding["outcome"] == "failed")
    report = run(config, topic, engine=engine)
    assert not report.succeeded
    assert f"`{name}`" in str(report) or f"{name} =" in str(report), report
