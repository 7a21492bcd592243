"""Nessie 0.99.0 refuses nested sort orders and sets `gc.enabled`.

Only in `make catalogs`: a large download.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from archiver.config import load_config
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.choice import CATALOG
from tests.support.catalog.nessie import nessie
from tests.support.catalog.signing_catalog import keyless
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves sockets of collect() open
    pytest.mark.skipif(CATALOG == "embedded", reason="`make catalogs` runs it: Nessie is a download of 245 MB"),
]


@pytest.fixture(scope="module")
def over_nessie(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with nessie(stack, tmp_path_factory.mktemp("nessie")) as running:
        yield running


def run(config: Path, *words: str, exit_code: int = 0) -> Result:
    done = CliRunner().invoke(app, [*words, "--config", str(config)])
    assert done.exit_code == exit_code, (words, done.output, done.stderr)
    return done


def test_all_commands(over_nessie: Stack, tmp_path: Path) -> None:
    topic = over_nessie.topic()
    config = over_nessie.config({topic: {}})
    checks = json.loads(run(config, "check", "--no-spark").stdout)["checks"]
    assert [check["detail"].partition(",")[0] for check in checks if check["outcome"] == "warning"] == [
        "the catalog refuses sort orders of fields inside a struct"
    ]
    for _ in range(3):
        over_nessie.produce(topic, *({"key": b"k%d" % (n % 5), "value": b"%d" % n} for n in range(20)))
        archive_once(config, topic, engine=InlineEngine())
    assert from_archive(config, topic, 1) == from_kafka(over_nessie, topic, 1)
    metadata = over_nessie.catalog().load_table(load_config(config).topic(topic).table).metadata
    assert not any(order.fields for order in metadata.sort_orders)
    exported = tmp_path / "exported.jsonl"
    for words in (
        ("verify", topic),
        ("status", topic),
        ("replay", topic, "--format", "jsonl", "--output", str(exported)),
        ("compact", topic, "--min-files", "2"),
        ("verify", topic),
        ("expire", topic, "--before", "5", "--rows", "--yes"),
        ("orphans", topic),
        ("status", topic),
    ):
        run(config, *words)
    views = run(config, "views", topic, "--engine", "spark", "--apply", exit_code=1)
    assert "the catalog doesn't offer views" in views.stderr
    erase = ("erase", topic, "--where", "key = 'k3'", "--yes")
    assert "gc.enabled" in run(config, *erase, exit_code=1).stderr
    with over_nessie.catalog().load_table(load_config(config).topic(topic).table).transaction() as change:
        change.set_properties({"gc.enabled": "true"})
    run(config, *erase)
    run(config, "verify", topic)
    assert len(exported.read_text().splitlines()) == 60
    records = from_archive(config, topic, 1)
    assert {record.key for record in records} == {b"k0", b"k1", b"k2", b"k4"}
    over_nessie.produce(topic, {"key": b"last", "value": b"x"})
    archive_once(config, topic, engine=InlineEngine())
    assert from_archive(config, topic, 1)[-1].key == b"last"


def test_remote_signing_alone_is_reported(stack: Stack, tmp_path: Path) -> None:
    with nessie(stack, tmp_path, signs=True) as signing:
        topic = signing.topic()
        signing.produce(topic, {"value": b"x"})
        config = signing.config({topic: {}})
        keyless(config, load_config(config).catalog["uri"])
        for words in (("check", "--no-spark"), ("archive", "--once")):
            done = run(config, *words, exit_code=1)
            assert "the catalog signs each request to the store and vends no keys" in done.stdout + done.stderr
