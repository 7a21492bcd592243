"""`archiver erase --plan` on the real stack: several topics in one erasure, with a signed certificate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archiver.audit.signing import PublicKey, Signature, SigningKey
from archiver.cli.app import app
from archiver.config import load_config
from archiver.upkeep.holds import HoldKeeper
from tests.support.archive.forgotten import NAME
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_archive, from_kafka
from tests.support.servers.stack import Stack

pytestmark = pytest.mark.integration

WHERE = "where"


def erase(config: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["erase", *words, "--config", str(config), "--json"])
    return done.exit_code, done.stdout + done.stderr


def test_plan_erases_in_all_topics_or_in_none(stack: Stack, tmp_path: Path) -> None:
    SigningKey.generate(tmp_path / "key.pem", tmp_path / "public.pem")
    orders, clicks = stack.topic(), stack.topic()
    config = stack.config({orders: {}, clicks: {}}, audit={"signing_key": str(tmp_path / "key.pem")})
    for topic in (orders, clicks):
        stack.produce(topic, *({"key": NAME if n % 3 == 0 else b"k", "value": b"%d" % n} for n in range(9)))
    archive_once(config)
    (tmp_path / "clicks.csv").write_text("0,3\n0,6\n")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'reason = "request 114"\n[[erase]]\ntopic = "{orders}"\n{WHERE} = "key = \'{NAME.decode()}\'"\n'
        f'[[erase]]\ntopic = "{clicks}"\noffsets_file = "clicks.csv"\n'
    )
    certificate = tmp_path / "erased.json"
    whole = {topic: from_kafka(stack, topic, 1) for topic in (orders, clicks)}

    code, printed = erase(config, "--plan", str(plan), "--dry-run")
    assert (code, printed.count('"dry_run": true')) == (0, 2)
    code, printed = erase(config, "--plan", str(plan))
    assert code == 2
    assert "--yes" in printed
    holds = HoldKeeper(load_config(config))
    placed = holds.place(clicks, start="3", end="4")
    code, printed = erase(config, "--plan", str(plan), "--yes", "--certificate", str(certificate))
    assert (code, "RecordsHeld" in printed) == (1, True)
    assert all(from_archive(config, topic, 1) == records for topic, records in whole.items())
    assert not certificate.exists()
    holds.release(clicks, placed.hold.id)

    code, printed = erase(config, "--plan", str(plan), "--yes", "--certificate", str(certificate))
    assert code == 0, printed
    gone = {orders: {0, 3, 6}, clicks: {3, 6}}
    for topic, records in whole.items():
        assert from_archive(config, topic, 1) == [record for record in records if record.offset not in gone[topic]]
    signed = json.loads(certificate.read_text())
    PublicKey.load(tmp_path / "public.pem").check(signed["certificate"], Signature.from_json(signed["signature"]))
    topics = {topic["topic"]: topic for topic in signed["certificate"]["topics"]}
    assert (topics[orders]["records"], topics[clicks]["records"]) == (3, 2)
    assert topics[clicks]["offsets"] == [[0, 3, 4], [0, 6, 7]]
    assert NAME.decode() not in certificate.read_text()
    assert "request 114" in (tmp_path / "erased.json.html").read_text()
