"""Confirmation before a removal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.cli.consent import TerminalConsent, consent_or_none, consent_to, deed, span_lines
from archiver.errors import ConsentMissing
from archiver.upkeep.consent import GIVEN, RemovalQuestion
from tests.support.terminal.consent_answers import Answers
from tests.support.terminal.pseudo_terminal import ARCHIVER, Seen, run

CONFIG = """
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
[catalog]
uri = "http://127.0.0.1:1"
[registry]
dsn = "postgresql://nobody@127.0.0.1:1/nothing"
[topics.orders]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "archiver.toml"
    path.write_text(CONFIG)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["erase", "orders", "--where", "key = 'jane'"],
        ["erase", "orders", "--offsets", "0:1200-1209"],
        ["orphans", "--delete"],
        ["refill", "orders", "--accept-removed"],
        ["refill", "orders", "--accept-lost"],
        ["groups", "delete", "readers"],
        ["users", "remove", "jane"],
    ],
    ids=" ".join,
)
def test_removals_need_yes_where_there_is_no_terminal(config: Path, words: list[str]) -> None:
    done = CliRunner().invoke(app, [*words, "--config", str(config), "--no-json"])
    assert done.exit_code == 2, done.output
    assert "ConsentMissing" in done.stderr
    assert "give --yes. Nothing was done" in " ".join(done.stderr.split())
    with_yes = CliRunner().invoke(app, [*words, "--yes", "--config", str(config), "--no-json"])
    assert (with_yes.exit_code, "ConsentMissing" in with_yes.stderr) == (1, False), "it goes on to the servers"


@pytest.mark.parametrize(
    "words", [["erase", "orders", "--where", "offset >= 0", "--dry-run"], ["refill", "orders"], ["orphans"]]
)
def test_what_removes_nothing_needs_no_consent(config: Path, words: list[str]) -> None:
    done = CliRunner().invoke(app, [*words, "--config", str(config), "--no-json"])
    assert (done.exit_code, "--yes" in done.stderr) == (1, False), done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["expire", "--yes"], "--yes is consent for topics: name them"),
        (["erase", "orders", "--where", "offset = 1", "--show", "--yes"], "--show goes with --dry-run"),
        (["erase", "orders", "--where", "offset = 1", "--offsets", "0:1"], "not both"),
        (["erase", "orders", "--offsets", "1200", "--yes"], "PARTITION:FIRST-LAST"),
        (["erase", "orders", "--finish", "--offsets", "0:1"], "or --finish"),
        (["erase", "orders", "--offsets-file", "/nowhere", "--yes"], "can't be read"),
        (["erase", "--plan", "/nowhere", "--finish"], "no topic, condition or --finish goes with it"),
        (["erase", "--plan", "/nowhere", "--show", "--yes"], "--show goes with --dry-run"),
    ],
)
def test_options_that_contradict_each_other(config: Path, words: list[str], message: str) -> None:
    done = CliRunner().invoke(app, [*words, "--config", str(config), "--no-json"])
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.stderr.split())


def test_a_list_without_records_is_refused(config: Path, tmp_path: Path) -> None:
    empty = tmp_path / "none.csv"
    empty.write_text("partition,offset\n")
    words = ["erase", "orders", "--offsets-file", str(empty), "--yes", "--config", str(config), "--no-json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "the list names no records" in done.output


def answered(config: Path, keys: bytes) -> Seen:
    typed: list[bytes] = []

    def press(_: int, terminal: int, shown: str) -> None:
        if "[y/N]" in shown and not typed:
            typed.append(keys)
            os.write(terminal, keys)

    command = [*ARCHIVER, "users", "remove", "jane", "--config", str(config)]
    return run(command, columns=120, on_frame=press, timeout=60)


@pytest.mark.parametrize("keys", [b"\r", b"n\r", b"maybe\r", b"\x04"])
def test_anything_but_yes_removes_nothing(config: Path, keys: bytes) -> None:
    seen = answered(config, keys)
    assert "Remove the user jane? [y/N]" in seen.text
    assert "the question was not answered with yes: nothing was removed" in " ".join(seen.text.split())
    assert seen.exit_code == 2


@pytest.mark.parametrize("keys", [b"y\r", b"YES\r"])
def test_yes_goes_on(config: Path, keys: bytes) -> None:
    seen = answered(config, keys)
    assert seen.exit_code == 1, "there is no Postgres"
    assert "nothing was removed" not in seen.text


def test_who_answers() -> None:
    assert consent_to("erase", yes=True, prompt=Answers(is_there=False)) is GIVEN
    assert isinstance(consent_to("erase", yes=False, prompt=Answers()), TerminalConsent)
    assert consent_or_none(yes=False, prompt=Answers(is_there=False)) is None
    with pytest.raises(ConsentMissing, match="`archiver erase` removes for good"):
        consent_to("erase", yes=False, prompt=Answers(is_there=False))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (
            RemovalQuestion(verb="erase", topic="orders", records=35, files=25),
            "Erase 35 records of orders, in 25 files",
        ),
        (
            RemovalQuestion(verb="retire", topic="orders", records=1, of_records=2_000, files=1, size_bytes=3_100_000),
            "Retire 1 of 2,000 records of orders, in 1 file (3.1 MB)",
        ),
        (RemovalQuestion(verb="delete", topic="orders", files=3), "Delete 3 files of orders"),
        (RemovalQuestion(verb="note as lost", topic="orders", records=7), "Note as lost 7 records of orders"),
        (RemovalQuestion(verb="forget", things="the group readers"), "Forget the group readers"),
    ],
)
def test_a_question_names_topic_and_number(question: RemovalQuestion, text: str) -> None:
    assert deed(question) == text


def test_spans_of_a_question() -> None:
    question = RemovalQuestion(verb="erase", topic="orders", spans=((0, 5, 6), (1, 1_200, 1_210)))
    assert span_lines(question) == ["partition 0: offset 5", "partition 1: offsets 1,200 to 1,209"]
