"""Consent to a retirement: required, shown and used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.cli.consent import TerminalConsent, deed
from archiver.config import load_config
from archiver.errors import ConsentMissing
from archiver.upkeep.consent import WITHHELD
from archiver.upkeep.retire.chore import retirement
from archiver.upkeep.retire.cut import RetireLimits
from archiver.upkeep.retire.report import ExpireEvent, ExpireFinished, TopicRetired
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_kafka
from tests.support.archive.retirements import archived, check, expire, produce
from tests.support.maintenance.chore_states import ChoreTurns
from tests.support.servers.stack import Stack
from tests.support.terminal.consent_answers import Answers

pytestmark = pytest.mark.integration


def in_a_pause(config: Path, topic: str) -> TopicRetired:
    reports: list[ExpireFinished] = []

    def note(event: ExpireEvent) -> None:
        if isinstance(event, ExpireFinished):
            reports.append(event)

    ChoreTurns((retirement(load_config(config), note),)).run(topic)
    return reports[0].report.topics[0]


def run(config: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*words, "--config", str(config), "--json"])
    return done.exit_code, done.stdout + done.stderr


def status(config: Path, topic: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(app, ["status", topic, "--config", str(config), "--json"])
    return done.exit_code, json.loads(done.stdout)["topics"][0]


@pytest.mark.parametrize(
    ("retention", "reason"),
    [
        ("30d", "30 of 30 records would go, more than half"),
        ("1h", 'records of the last day may go by retention = "1h"'),
    ],
)
def test_automatic_retirement_waits_for_consent(stack: Stack, retention: str, reason: str) -> None:
    config, topic = archived(stack, retention=retention, expire="auto")
    kafka = from_kafka(stack, topic, 1)
    waiting = in_a_pause(config, topic)
    assert isinstance(waiting.error, ConsentMissing)
    assert reason in waiting.error.message
    assert f"`archiver expire {topic} --yes`" in waiting.error.message
    check(config, topic, kafka)

    code, shown = status(config, topic)
    assert code == 1
    assert shown["needs_consent"]["kind"] == "ConsentMissing"
    assert reason in shown["needs_consent"]["message"]
    code, text = run(config, "expire", topic)
    assert (code, json.dumps(reason)[1:-1] in text, "--yes" in text) == (2, True, True)
    check(config, topic, kafka)

    assert run(config, "expire", topic, "--yes")[0] == 0
    check(config, topic, [])
    assert status(config, topic) == (0, status(config, topic)[1] | {"needs_consent": None})
    produce(stack, topic, range(30, 40), day=4)
    archive_once(config)
    assert in_a_pause(config, topic).rows == 10, "consent is for the value of `retention`, once"


def test_another_value_needs_consent_again(stack: Stack) -> None:
    config, topic = archived(stack, retention="1h", expire="auto")
    assert run(config, "expire", topic, "--yes")[0] == 0
    config.write_text(config.read_text().replace('"1h"', '"2h"'))
    assert status(config, topic)[0] == 1
    assert isinstance(in_a_pause(config, topic).error, ConsentMissing)


def test_less_than_half_goes_without_a_question(stack: Stack) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    code, text = run(config, "expire", topic, "--before", "10")
    assert code == 0, text
    code, text = run(config, "expire", topic, "--before", "20")
    assert code == 0, "ten of twenty are not more than half"
    code, text = run(config, "expire", topic, "--before", "30")
    assert (code, "10 of 10 records would go" in text, "--yes" in text) == (2, True, True)
    check(config, topic, kafka[20:])


def test_yes_names_its_topics(stack: Stack) -> None:
    config, topic = archived(stack, retention="1h")
    kafka = from_kafka(stack, topic, 1)
    code, text = run(config, "expire", "--yes")
    assert (code, "name them" in text) == (2, True)
    check(config, topic, kafka)


def test_a_dry_run_says_what_needs_consent(stack: Stack) -> None:
    config, topic = archived(stack, retention="1h", expire="auto")
    code, text = run(config, "expire", topic, "--dry-run")
    assert code == 0
    assert len(json.loads(text.splitlines()[0])["needs_consent"]) == 2
    assert status(config, topic)[0] == 1


def test_a_table_that_changed_is_asked_about_again(stack: Stack) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    answers = Answers([lambda: expire(config, topic, limits=RetireLimits(offset=10))])
    done = expire(config, topic, limits=RetireLimits(offset=20), consent=TerminalConsent(answers))
    assert done.error is None
    assert [deed(question).partition(" (")[0] for question in answers.asked] == [
        f"Retire 20 of 30 records of {topic}, in 2 files",
        f"Retire 10 of 20 records of {topic}, in 1 file",
    ]
    assert [question.is_repeated for question in answers.asked] == [False, True]
    assert (done.rows, done.first_offsets) == (10, {0: 20})
    check(config, topic, kafka[20:])


def test_no_retires_nothing(stack: Stack) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    done = expire(config, topic, limits=RetireLimits(offset=10), consent=TerminalConsent(Answers([], answer=False)))
    assert isinstance(done.error, ConsentMissing)
    assert expire(config, topic, limits=RetireLimits(offset=10), consent=WITHHELD).rows == 10, (
        "a third needs no consent"
    )
    check(config, topic, kafka[10:])


def warned(config: Path) -> list[str]:
    done = CliRunner().invoke(app, ["check", "--no-spark", "--config", str(config), "--json"])
    checks = json.loads(done.stdout)["checks"]
    return [
        finding["detail"] for finding in checks if finding["part"] == "Retention" and finding["outcome"] == "warning"
    ]


@pytest.mark.parametrize("retention", ["1h", "30d"])
def test_check_warns_until_there_is_consent(stack: Stack, retention: str) -> None:
    config, topic = archived(stack, retention=retention)
    (detail,) = warned(config)
    assert "30 of 30 records would go, more than half" in detail
    assert ("records of the last day" in detail) is (retention == "1h")
    assert run(config, "expire", topic, "--yes")[0] == 0
    assert warned(config) == []


def test_check_warns_of_a_topic_that_is_not_archived_yet(stack: Stack) -> None:
    config = stack.config({"later.*": {"retention": "12h"}, "kept.*": {"retention": "90d"}})
    config.write_text(config.read_text().replace('[topics."later.*"]\n"table" = ', '[topics."later.*"]\n# '))
    config.write_text(config.read_text().replace('[topics."kept.*"]\n"table" = ', '[topics."kept.*"]\n# '))
    (detail,) = warned(config)
    assert detail.startswith('records of the last day may go by retention = "12h": nothing of the topic is retired')
