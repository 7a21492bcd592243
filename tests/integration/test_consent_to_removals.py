"""Questions before erasures and accepted losses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.cli.consent import TerminalConsent, deed
from archiver.config import load_config
from archiver.errors import ConsentMissing
from archiver.records.where import Where
from archiver.upkeep.erase.job import Erase
from archiver.upkeep.erase.offset_list import OffsetList
from archiver.upkeep.erase.report import EraseReport
from archiver.upkeep.refill.job import RefillJob
from tests.support.archive.job_runs import archive_once
from tests.support.archive.readers import from_kafka
from tests.support.archive.retirements import archived, check, produce
from tests.support.catalog.foreign_writes import delete_rows
from tests.support.engine.inline_engine import InlineEngine
from tests.support.servers.stack import Stack
from tests.support.terminal.consent_answers import Answers
from tests.support.terminal.pseudo_terminal import ARCHIVER, Seen
from tests.support.terminal.pseudo_terminal import run as run_on_terminal

pytestmark = pytest.mark.integration


def erase(config: Path, topic: str, where: str | OffsetList, **more: Any) -> EraseReport:
    condition = Where.parse(where) if isinstance(where, str) else where
    return Erase(load_config(config), topic, condition, engine=InlineEngine(), **more).run()


def run(config: Path, *words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [*words, "--config", str(config), "--json"])
    return done.exit_code, done.stdout, done.stderr


def test_the_question_names_what_is_erased_and_shows_some(stack: Stack) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    answers = Answers()
    done = erase(config, topic, "offset >= 8 and offset < 12", consent=TerminalConsent(answers))
    (question,) = answers.asked
    assert deed(question) == f"Erase 4 records of {topic}, in 2 files"
    assert question.spans == ((0, 8, 12),)
    shown = [json.loads(line) for line in question.facts]
    assert [(record["offset"], record["key"]) for record in shown] == [(8, "k8"), (9, "k9"), (10, "k10")]
    assert (done.rows, done.spans) == (4, ((0, 8, 12),))
    check(config, topic, [*kafka[:8], *kafka[12:]])


def test_no_erases_nothing(stack: Stack) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    with pytest.raises(ConsentMissing, match="nothing was erased"):
        erase(config, topic, "offset >= 0", consent=TerminalConsent(Answers(answer=False)))
    check(config, topic, kafka)
    assert erase(config, topic, "offset = 99", consent=TerminalConsent(Answers(answer=False))).rows == 0


def test_records_that_went_meanwhile_are_asked_about_again(stack: Stack) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    answers = Answers([lambda: erase(config, topic, "offset = 9")])
    done = erase(config, topic, "offset >= 8 and offset < 12", consent=TerminalConsent(answers))
    assert [deed(question) for question in answers.asked] == [
        f"Erase 4 records of {topic}, in 2 files",
        f"Erase 3 records of {topic}, in 2 files",
    ]
    assert [question.is_repeated for question in answers.asked] == [False, True]
    assert done.rows == 3
    check(config, topic, [*kafka[:8], *kafka[12:]])


def test_records_that_came_meanwhile_stay(stack: Stack) -> None:
    config, topic = archived(stack)

    def more() -> None:
        produce(stack, topic, range(30, 40), day=4)
        archive_once(config)

    answers = Answers([more])
    done = erase(config, topic, "offset >= 25", consent=TerminalConsent(answers))
    assert ([deed(question) for question in answers.asked], done.rows) == (
        [f"Erase 5 records of {topic}, in 1 file"],
        5,
    )
    kafka = from_kafka(stack, topic, 1)
    check(config, topic, [*kafka[:25], *kafka[30:]])


def test_a_list_of_offsets_is_erased(stack: Stack, tmp_path: Path) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    code, shown, errors = run(config, "erase", topic, "--offsets", "0:3-4", "--offsets", "0:17", "--dry-run", "--show")
    assert code == 0, errors
    records = [json.loads(line) for line in shown.splitlines()]
    assert [(record["offset"], record["value"]) for record in records] == [(3, "v3"), (4, "v4"), (17, "v17")]
    assert "3 rows in 2 files would be erased" in errors
    listed = tmp_path / "hers.jsonl"
    listed.write_text(shown)
    code, text, errors = run(config, "erase", topic, "--offsets-file", str(listed), "--yes")
    assert code == 0, errors
    done = json.loads(text.splitlines()[0])
    assert (done["records"], done["offsets"], done["unfinished"]) == (3, {"0": 3}, [])
    assert len(done["finished"]) == 1
    check(config, topic, [record for record in kafka if record.offset not in {3, 4, 17}])


def test_a_list_of_another_topic_is_refused(stack: Stack) -> None:
    config, topic = archived(stack)
    code, _, errors = run(config, "erase", topic, "--offsets", "0:30", "--yes")
    assert (code, "another topic" in errors) == (2, True)
    code, _, errors = run(config, "erase", topic, "--offsets", "1:3", "--yes")
    assert (code, "another topic" in errors) == (2, True)


def test_rows_are_noted_as_gone_after_a_question(stack: Stack) -> None:
    config, topic = archived(stack)
    delete_rows(stack, config, topic, 0, range(5))
    with pytest.raises(ConsentMissing, match="nothing was changed"):
        RefillJob(
            load_config(config),
            topic,
            accept_removed=True,
            engine=InlineEngine(),
            consent=TerminalConsent(Answers(answer=False)),
        ).run()
    answers = Answers()
    done = RefillJob(
        load_config(config), topic, accept_removed=True, engine=InlineEngine(), consent=TerminalConsent(answers)
    ).run()
    assert deed(answers.asked[0]) == f"Note as erased 5 records of {topic}"
    assert done.commit_id is not None


def on_a_terminal(config: Path, *words: str, keys: bytes) -> Seen:
    typed: list[bytes] = []

    def press(_: int, terminal: int, shown: str) -> None:
        if "[y/N]" in shown and not typed:
            typed.append(keys)
            os.write(terminal, keys)

    return run_on_terminal([*ARCHIVER, *words, "--config", str(config)], columns=100, on_frame=press, timeout=240)


def test_a_terminal_shows_the_question_and_takes_the_answer(stack: Stack) -> None:
    config, topic = archived(stack)
    kafka = from_kafka(stack, topic, 1)
    no = on_a_terminal(config, "erase", topic, "--where", "offset < 2", keys=b"n\r")
    assert no.exit_code == 2
    assert f"Erase 2 records of {topic}, in 1 file? [y/N] n" in no.text
    assert "nothing was erased" in " ".join(no.text.split())
    check(config, topic, kafka)
    yes = on_a_terminal(config, "erase", topic, "--where", "offset < 2", keys=b"y\r")
    assert yes.exit_code == 0, yes.text
    assert f"{topic}: 2 rows in 1 file erased" in yes.text
    retired = on_a_terminal(config, "expire", topic, "--before", "10", keys=b"y\r")
    assert retired.exit_code == 0, retired.text
    assert f"Retire 8 of 28 records of {topic}, in 1 file" in retired.text
    assert "partition 0: offsets 0 to 9" in retired.text
    check(config, topic, kafka[10:])
