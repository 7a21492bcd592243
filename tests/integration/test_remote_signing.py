"""A catalog that offers remote signing alone is reported before any work; with keys the archiver uses them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.config import load_config
from catalog.errors import CatalogDenied
from tests.support.archive.job_runs import archive_once, run
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.catalog.lossy_catalog import glue_proxy
from tests.support.catalog.signing_catalog import KEYS, SigningProxy, keyless, signing_proxy
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

SAID = "the catalog signs each request to the store and vends no keys"


@pytest.fixture
def signing(stack: Stack) -> Iterator[SigningProxy]:
    with signing_proxy(load_config(stack.config_path).catalog["uri"]) as proxy:
        yield proxy


def tables(stack: Stack) -> set[str]:
    return {name for *_, name in stack.catalog().list_tables("kafka")}


def command(config: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*words, "--config", str(config)])
    return done.exit_code, done.output + done.stderr


def test_check_and_archive_name_it_before_any_work(stack: Stack, signing: SigningProxy) -> None:
    topic = stack.topic()
    stack.produce(topic, {"value": b"x"})
    config = keyless(stack.config({topic: {}}), signing.uri)
    done = CliRunner().invoke(app, ["check", "--no-spark", "--config", str(config)])
    failed = [check for check in json.loads(done.stdout)["checks"] if check["outcome"] == "failed"]
    assert {(check["part"], check["error"]["kind"]) for check in failed} == {
        ("Catalog", "CatalogDenied"),
        ("Table names", "CatalogDenied"),
    }
    assert all(check["error"]["message"].startswith(SAID) for check in failed)
    error = run(config).topics[0].error
    assert isinstance(error, CatalogDenied)
    assert error.message.startswith(SAID)
    name = load_config(config).topic(topic).table.rpartition(".")[2]
    assert name not in tables(stack)
    assert not list(load_config(config).archive.spool.rglob("*.parquet"))
    assert signing.signed == 0


def test_commands_on_an_archive_name_it(stack: Stack, signing: SigningProxy) -> None:
    """The archive was made with keys, which are gone."""
    topic = stack.topic()
    stack.produce(topic, {"value": b"x"})
    config = stack.config({topic: {}})
    archive_once(config)
    keyless(config, signing.uri)
    for words in (
        ("status", topic),
        ("replay", topic, "--format", "jsonl"),
        ("verify", topic),
        ("compact", topic),
        ("archive", "--once"),
    ):
        exit_code, said = command(config, *words)
        assert (exit_code, SAID in " ".join(said.split())) == (1, True), (words, said)


@pytest.mark.parametrize("keys", ["vended", "configured"])
def test_keys_are_used_beside_an_offer_to_sign(stack: Stack, keys: str) -> None:
    topic = stack.topic()
    stack.produce(topic, *({"value": b"%d" % number} for number in range(20)))
    config = stack.config({topic: {}})
    uri = load_config(config).catalog["uri"]
    own = {name: stack.catalog_properties[name] for name in KEYS}
    with signing_proxy(uri, own if keys == "vended" else None) as signing:
        if keys == "vended":
            keyless(config, signing.uri)
        else:
            config.write_text(config.read_text().replace(uri, signing.uri))
        assert archive_once(config).records == 20
        assert from_archive(config, topic, 1) == from_kafka(stack, topic, 1)
        assert signing.signed == 0


def test_check_leaves_no_table_behind(stack: Stack) -> None:
    """Without staged creation the scratch table is there before the offer to sign is seen."""
    topic = stack.topic()
    config = stack.config({topic: {}})
    with glue_proxy(load_config(config).catalog["uri"]) as glue, signing_proxy(glue.uri) as signing:
        keyless(config, signing.uri)
        exit_code, said = command(config, "check", "--no-spark")
    assert (exit_code, SAID in said, glue.plain) == (1, True, 1)
    assert not {table for table in tables(stack) if table.startswith("archiver_check")}
