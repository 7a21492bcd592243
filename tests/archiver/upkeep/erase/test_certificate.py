"""Certificates of erasures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from archiver.audit.documents import check_place
from archiver.audit.entry import Author
from archiver.audit.signing import PublicKey, Signature, SigningKey
from archiver.errors import ConfigError, SignatureInvalid, UpkeepError
from archiver.records.where import Where
from archiver.upkeep.erase.certificate import CERTIFICATE, write_certificate
from archiver.upkeep.erase.plan import ErasurePlan, PlannedErasure, PlanReport
from archiver.upkeep.erase.report import EraseReport

AUTHOR = Author(principal="dana", host="vm", version="0.1.0")
SECRET = "jane@example.com"


def report(*, fails: bool = False) -> PlanReport:
    condition = Where.parse(f"key = '{SECRET}'")
    plan = ErasurePlan(erasures=(PlannedErasure(topic="a<b", condition=condition),), reason="<script>114</script>")
    done = EraseReport(
        topic="a<b",
        table="kafka.a",
        dry_run=False,
        erasure="01E",
        condition_hash="ab12",
        salt="5a17",
        rows=3,
        files=1,
        spans=((0, 5, 7), (1, 2, 3)),
        commits=["01C"],
    )
    errors = {"clicks": UpkeepError("the table lacks rows", topic="clicks")} if fails else {}
    return PlanReport(plan=plan, reports=(done,), errors=errors)


def test_certificate_is_signed_and_names_no_person(tmp_path: Path) -> None:
    key = SigningKey.generate(tmp_path / "key.pem", tmp_path / "public.pem")
    paths = write_certificate(report(), tmp_path / "erased.json", key, AUTHOR)
    texts = [Path(path).read_text() for path in paths]
    assert not any(secret in text for text in texts for secret in (SECRET, "5a17"))
    signed = json.loads(texts[0])
    public, signature = PublicKey.load(tmp_path / "public.pem"), Signature.from_json(signed["signature"])
    public.check(signed["certificate"], signature)
    assert signed["certificate"]["topics"][0]["offsets"] == [[0, 5, 7], [1, 2, 3]]
    assert signed["certificate"]["topics"][0]["offset_count"] == 3
    signed["certificate"]["topics"][0]["records"] = 4
    with pytest.raises(SignatureInvalid):
        public.check(signed["certificate"], signature)
    page = texts[1]
    assert paths[1].endswith("erased.json.html")
    assert "No object of the archive has the records any more" in page
    assert "<script>" not in page
    assert "a&lt;b" in page
    assert key.id in page


def test_unfinished_erasure_says_so(tmp_path: Path) -> None:
    key = SigningKey.generate(tmp_path / "key.pem", tmp_path / "public.pem")
    paths = write_certificate(report(fails=True), tmp_path / "erased.json", key, AUTHOR)
    document = json.loads(Path(paths[0]).read_text())["certificate"]
    assert not document["succeeded"]
    assert document["failed"][0]["topic"] == "clicks"
    assert "The erasure is not finished" in Path(paths[1]).read_text()


def test_place_is_checked_before_work(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "erased.json"):
        with pytest.raises(ConfigError):
            check_place(path, CERTIFICATE)


def test_erasure_of_nothing_claims_nothing(tmp_path: Path) -> None:
    key = SigningKey.generate(tmp_path / "key.pem", tmp_path / "public.pem")
    (done,) = report().reports
    nothing = replace(report(), reports=(replace(done, rows=0, spans=(), erasure=None),))
    page = Path(write_certificate(nothing, tmp_path / "erased.json", key, AUTHOR)[1]).read_text()
    assert "The search found no such records" in page
    assert "No object of the archive" not in page


def test_certificate_names_earlier_erasures(tmp_path: Path) -> None:
    key = SigningKey.generate(tmp_path / "key.pem", tmp_path / "public.pem")
    (done,) = report().reports
    later = replace(
        done,
        rows=0,
        spans=(),
        erasure="02E",
        conditions={"01A": "aa", "01B": "bb", "01C": "cc", "01D": "", "02E": "ab12"},
        finished=("01A", "02E"),
        given_up=("01B",),
        unfinished=("01C", "01D"),
        unsearched=("01C",),
        erased=((0, 5, 7),),
    )
    paths = write_certificate(replace(report(), reports=(later,)), tmp_path / "erased.json", key, AUTHOR)
    (topic,) = json.loads(Path(paths[0]).read_text())["certificate"]["topics"]
    assert {entry["erasure"]: entry["state"] for entry in topic["open_erasures"]} == {
        "01A": "finished",
        "01B": "given up",
        "01C": "search cut short",
        "01D": "not finished",
        "02E": "finished",
    }
    page = Path(paths[1]).read_text()
    assert "The erasure is not finished: see below what is left" in page
    assert "Earlier erasures were given up" in page
    assert "<th>earlier erasures finished now</th><td>01A</td>" in page
    assert "<th>earlier erasures given up</th><td>01B</td>" in page
    assert "<th>erasures whose search was cut short</th><td>01C</td>" in page


def test_certificate_of_a_finished_erasure(tmp_path: Path) -> None:
    key = SigningKey.generate(tmp_path / "key.pem", tmp_path / "public.pem")
    (done,) = report().reports
    closed = replace(
        done, rows=0, spans=(), erasure=None, condition_hash="", conditions={"01E": "ab12"}, erased=((0, 5, 7),)
    )
    finish = PlanReport(plan=ErasurePlan(erasures=()), reports=(replace(closed, finished=("01E",)),))
    paths = write_certificate(finish, tmp_path / "erased.json", key, AUTHOR)
    (topic,) = json.loads(Path(paths[0]).read_text())["certificate"]["topics"]
    assert topic["open_erasures"] == [{"erasure": "01E", "condition_hash": "ab12", "state": "finished"}]
    assert topic["erased_offsets"] == [[0, 5, 7]]
    page = Path(paths[1]).read_text()
    assert "No object of the archive has the records any more" in page
    assert "Offsets of which no object has a record any more" in page
    nothing = PlanReport(plan=ErasurePlan(erasures=()), reports=(replace(closed, conditions={}, erased=()),))
    page = Path(write_certificate(nothing, tmp_path / "erased.json", key, AUTHOR)[1]).read_text()
    assert "No erasure was open: nothing was erased now" in page
