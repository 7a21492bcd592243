"""`archiver journal sum`: output and exit codes."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from typer.testing import CliRunner, Result

from archiver.cli.app import app
from archiver.storage.journal import TableJournal
from tests.support.storage.old_journal import COMMITS, entries, names, old_journal

RUN = CliRunner()
UUID_ = UUID(int=7)


@pytest.fixture
def journal(tmp_path: Path) -> TableJournal:
    root = tmp_path / "journal"
    folder = root / "kafka.orders" / str(UUID_)
    folder.parent.mkdir(parents=True)
    made = old_journal(tmp_path / "made")
    (tmp_path / "made" / "table").rename(folder)
    (root / "audit" / "kafka.orders" / str(UUID_)).mkdir(parents=True)
    (root / "kafka.orders" / "notes").mkdir()
    (tmp_path / "archiver.toml").write_text(
        f"""
        kafka."bootstrap.servers" = "127.0.0.1:1"
        catalog.uri = "http://127.0.0.1:1"
        registry.dsn = "postgresql://nobody@127.0.0.1:1/none"
        archive.journal = "{root.as_uri()}"
        topics.orders = {{ table = "kafka.orders" }}
        topics.other = {{}}
        """
    )
    return replace(made, folder=folder.as_uri())


def run(tmp_path: Path, *arguments: str) -> Result:
    return RUN.invoke(app, ["journal", "sum", *arguments, "--config", str(tmp_path / "archiver.toml")])


def test_it_says_what_it_would_do_then_does_it(tmp_path: Path, journal: TableJournal) -> None:
    before, said = names(journal), entries(journal)
    asked = run(tmp_path, "--dry-run", "--no-json")
    assert asked.exit_code == 0, asked.output
    assert f"{COMMITS + 1} objects, 1 after it" in asked.output
    assert "nothing was changed" in asked.output
    assert names(journal) == before
    done = run(tmp_path, "orders", "--json")
    assert done.exit_code == 0, done.output
    (line,) = map(json.loads, done.stdout.splitlines())
    assert (line["event"], line["table"], line["uuid"]) == ("summed", "kafka.orders", str(UUID_))
    assert (line["before"], line["summed"], line["removed"], line["after"]) == (13, 13, 13, 1)
    assert (line["kept"], line["error"], line["dry_run"]) == (0, None, False)
    assert (len(names(journal)), entries(journal)) == (1, said)


def test_what_fails_is_told_and_the_exit_code_is_1(tmp_path: Path, journal: TableJournal) -> None:
    path = tmp_path / "journal" / "kafka.orders" / str(UUID_) / names(journal)[3]
    path.write_bytes(b"{")
    os.utime(path, (0, 0))
    failed = run(tmp_path, "--json")
    assert failed.exit_code == 1
    (line,) = map(json.loads, failed.stdout.splitlines())
    assert line["error"]["kind"] == "BadSegment"
    result = run(tmp_path, "--no-json")
    assert result.exit_code == 1
    assert "can't be read" in result.output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--older-than", "5m"), "1h at least"),
        (("--older-than", "soon"), "--older-than"),
        (("other",), "no journal"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, journal: TableJournal, arguments: tuple[str, ...], text: str
) -> None:
    before = names(journal)
    refused = run(tmp_path, *arguments, "--no-json")
    assert refused.exit_code != 0
    assert text in " ".join(refused.output.split())
    assert names(journal) == before
