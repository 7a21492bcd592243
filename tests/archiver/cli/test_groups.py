"""Refusals and confirmations of `archiver groups`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.cli.consent import TerminalConsent, deed
from archiver.cli.groups import agree, groups_of_cluster
from archiver.cli.kept_groups import described_group
from archiver.errors import BrokerUnavailable, ConsentMissing
from archiver.kafka.groups import Described, Progress
from catalog.model import PartitionOffset
from catalog.registry import GroupOffset
from tests.support.terminal.consent_answers import Answers


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "say where the group shall go on"),
        (["--to-earliest", "--to-latest"], "say where the group shall go on"),
        (["--to-datetime", "2026-01-31T12:00:00"], "no zone"),
        (["--to-datetime", "12"], "takes a time"),
        (["--by-duration", "soon"], "--by-duration"),
        (["--to-earliest", "--partition", "1"], "one --topic"),
        (["--to-earliest", "--partition", "1", "--topic", "a", "--topic", "b"], "one --topic"),
    ],
)
def test_a_reset_says_one_place(options: list[str], told: str) -> None:
    done = CliRunner().invoke(app, ["groups", "reset", "g", *options, "--bootstrap-server", "127.0.0.1:1", "--json"])
    assert done.exit_code == 2
    assert told in done.stderr


def test_a_server_that_is_not_there_is_named(tmp_path: object) -> None:
    options = ["--bootstrap-server", "127.0.0.1:1", "--json", "--kafka-options", f"{tmp_path}/none"]
    done = CliRunner().invoke(app, ["groups", "list", *options])
    assert done.exit_code == 2
    assert "file of options" in done.stderr


def test_server_that_does_not_run_is_named(tmp_path: Path) -> None:
    config = tmp_path / "archiver.toml"
    config.write_text("\n".join(line for line in GUARDED.splitlines() if "sasl" not in line))
    with pytest.raises(BrokerUnavailable) as caught, groups_of_cluster(config, None, None):
        raise BrokerUnavailable("No broker answers: Local: Timed out")
    assert caught.value.message == "No broker answers: Local: Timed out. Start it with `archiver serve kafka`"
    assert "server" in caught.value.context
    with pytest.raises(BrokerUnavailable) as caught, groups_of_cluster(config, "127.0.0.1:1", None):
        raise BrokerUnavailable("No broker answers: Local: Timed out")
    assert "archiver serve kafka" not in caught.value.message


@dataclass
class GroupsThatCommit:
    offsets: list[int]

    def describe(self, names: Sequence[str]) -> tuple[Described, ...]:
        offset = self.offsets.pop(0) if len(self.offsets) > 1 else self.offsets[0]
        progress = (Progress(topic="orders", partition=0, committed=offset, end=offset + 10),)
        return tuple(
            Described(group=name, kind="consumer", state="EMPTY", assignor="", members=(), progress=progress)
            for name in names
        )


def test_a_group_that_commits_meanwhile_is_asked_about_again() -> None:
    answers = Answers()
    agree(cast("Any", GroupsThatCommit([5, 7])), ["readers"], TerminalConsent(answers))
    assert [deed(question) for question in answers.asked] == ["Forget the group readers with 1 committed offset"] * 2
    assert [question.facts for question in answers.asked] == [
        ("orders, partition 0: at 5",),
        ("orders, partition 0: at 7",),
    ]
    assert [question.is_repeated for question in answers.asked] == [False, True]


def test_no_forgets_no_group() -> None:
    with pytest.raises(ConsentMissing, match="nothing was deleted"):
        agree(cast("Any", GroupsThatCommit([5])), ["readers"], TerminalConsent(Answers(answer=False)))


GUARDED = """
kafka."bootstrap.servers" = "127.0.0.1:1"
catalog.uri = "http://127.0.0.1:1"
registry.dsn = "postgresql://archiver@127.0.0.1:1/none?connect_timeout=1"
serve.sasl = { mechanisms = ["SCRAM-SHA-512"] }
"""


@pytest.mark.parametrize("words", [["reset", "g", "--to-earliest"], ["delete", "g", "--yes"]])
def test_a_server_with_a_login_needs_options(tmp_path: Path, words: list[str]) -> None:
    config = tmp_path / "archiver.toml"
    config.write_text(GUARDED)
    done = CliRunner().invoke(app, ["groups", *words, "--config", str(config), "--no-json"])
    assert done.exit_code == 2
    assert "the server requires TLS or a login" in done.stderr
    assert "--kafka-options FILE" in done.stderr


def test_groups_of_a_server_with_a_login_come_from_the_registry(tmp_path: Path) -> None:
    config = tmp_path / "archiver.toml"
    config.write_text(GUARDED)
    done = CliRunner().invoke(app, ["groups", "list", "--config", str(config), "--no-json"])
    assert done.exit_code == 1
    assert done.stderr.startswith("RegistryUnreachable: Postgres does not answer")


def test_kept_groups_have_offsets_and_no_members() -> None:
    offsets = {("orders", 0): GroupOffset(topic_id=UUID(int=1), offset=5)}
    group = described_group("readers", offsets, {"orders": {0: PartitionOffset(next_offset=12)}})
    assert (group.members, group.state, [progress.lag for progress in group.progress]) == ((), "unknown", [7])
