"""`archiver erase --plan`: several topics and a signed certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    code, printed = erase(config, "--plan", str(plan), "--dry-run", "--show")
    shown = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert (code, [(record["topic"], record["offset"]) for record in shown]) == (
        0,
        [*((orders, offset) for offset in (0, 3, 6)), *((clicks, offset) for offset in (3, 6))],
    )
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


def test_certificate_of_an_erasure_that_waits(stack: Stack, tmp_path: Path) -> None:
    SigningKey.generate(tmp_path / "key.pem", tmp_path / "public.pem")
    topic = stack.topic()
    config = stack.config({topic: {}}, audit={"signing_key": str(tmp_path / "key.pem")})
    stack.produce(topic, *({"key": NAME if n % 3 == 0 else b"k", "value": b"%d" % n} for n in range(9)))
    archive_once(config)
    name = load_config(config).topic(topic).table
    table = stack.catalog().load_table(name)
    table.manage_snapshots().create_tag(table.metadata.current_snapshot_id, "audit").commit()
    certificate = tmp_path / "erased.json"

    def certified(*words: str) -> tuple[int, dict[str, Any], str]:
        code, printed = erase(config, topic, *words, "--certificate", str(certificate))
        assert certificate.exists(), printed
        signed = json.loads(certificate.read_text())
        PublicKey.load(tmp_path / "public.pem").check(signed["certificate"], Signature.from_json(signed["signature"]))
        page = (tmp_path / "erased.json.html").read_text()
        certificate.unlink()
        return code, signed["certificate"], page

    search = ("--where", f"key = '{NAME.decode()}'", "--yes")
    code, document, _ = certified(*search)
    (first,) = document["topics"][0]["not_finished"]
    assert (code, document["succeeded"]) == (1, False)
    code, document, page = certified(*search)
    assert (code, document["succeeded"], document["records"]) == (1, False, 0), "finds nothing, and something is open"
    assert first in document["topics"][0]["not_finished"]
    assert "The erasure is not finished" in page
    code, document, page = certified("--finish")
    assert (code, document["succeeded"]) == (1, False)

    stack.catalog().load_table(name).manage_snapshots().remove_tag("audit").commit()
    code, document, page = certified("--finish")
    assert (code, document["succeeded"]) == (0, True)
    states = {entry["erasure"]: entry["state"] for entry in document["topics"][0]["open_erasures"]}
    assert states[first] == "finished"
    assert document["topics"][0]["erased_offsets"] == [[0, 0, 1], [0, 3, 4], [0, 6, 7]]
    assert "No object of the archive has the records any more" in page
    code, document, page = certified("--finish")
    assert (code, document["succeeded"]) == (0, True)
    assert "No erasure was open: nothing was erased now" in page
