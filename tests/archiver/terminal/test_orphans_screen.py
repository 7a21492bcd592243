from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archiver.cli.app import app
from archiver.errors import StorageDenied
from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import JsonLines
from archiver.terminal.orphans_screen import SHOWN, OrphansScreen
from archiver.upkeep.orphans.report import (
    KeptFor,
    ObjectsListed,
    Orphan,
    OrphanEvent,
    OrphanFailed,
    OrphanKind,
    OrphanObserver,
    OrphansFinished,
    OrphansFound,
    OrphansRemoved,
    OrphansReport,
    TopicOrphans,
)
from tests.support.terminal.screen import seen


def report(number: int, *, deletes: bool) -> OrphansReport:
    orphans = tuple(
        Orphan(path=f"s3://b/{n}", name=str(n), size=1_000_000, modified_ms=0, kind=OrphanKind.REJECTED, ulid="u")
        for n in range(number)
    )
    topic = TopicOrphans(topic="orders", table="kafka.orders", listed=99, orphans=orphans, kept=Counter(age=3))
    if deletes:
        topic.deleted = list(orphans[1:])
        topic.failures[orphans[0].path] = StorageDenied("no right", file=orphans[0].path)
    return OrphansReport(topics=(topic,), deletes=deletes, older_than=60.0, spool_folders=0, seconds=1.5)


def shown(done: OrphansReport) -> str:
    console = TextConsole(file=io.StringIO(), width=200)
    OrphansScreen(console)(OrphansFinished(report=done))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_dry_run_names_what_would_go() -> None:
    text = shown(report(SHOWN + 5, deletes=False))
    assert f"s3://b/{SHOWN - 1}" in text
    assert "and 5 more" in text
    assert "25 orphans with 25.0 MB; nothing was changed; run again with --delete" in text
    assert "3 by age" in text


def test_a_removal_says_what_went() -> None:
    assert "3 of 4 orphans deleted, 1.5 s" in shown(report(4, deletes=True))


def test_a_machine_hears_of_every_object(capsys: pytest.CaptureFixture[str]) -> None:
    play(JsonLines(OrphansScreen.lines), report(4, deletes=True))
    topic, finished = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (finished["event"], finished["succeeded"], finished["dry_run"]) == ("finished", False, False)
    assert (topic["event"], topic["topic"], topic["objects"]) == ("orphans", "orders", 99)
    assert [orphan["deleted"] for orphan in topic["orphans"]] == [False, True, True, True]
    assert topic["kept"] == {KeptFor.AGE: 3}
    assert topic["failures"][0]["file"] == "s3://b/0"
    assert topic["orphans"][0]["modified"] == "1970-01-01T00:00:00Z"


def play(observer: OrphanObserver, done: OrphansReport) -> None:
    events: tuple[OrphanEvent, ...] = (
        ObjectsListed(topic="orders", objects=40),
        OrphansFound(topic="orders", orphans=3),
        OrphansRemoved(topic="orders", orphans=2),
        OrphanFailed(topic="orders", path="s3://b/0", error=StorageDenied("no right")),
    )
    for event in (*events, *events, OrphansFinished(report=done)):
        observer(event)


@pytest.mark.parametrize("terminal", [True, False])
def test_orphan_failures_come_first_and_the_report_last(terminal: bool) -> None:
    console = TextConsole(file=io.StringIO(), width=200, force_terminal=terminal)
    with OrphansScreen(console) as screen:
        play(screen, report(4, deletes=True))
    assert isinstance(console.file, io.StringIO)
    written = console.file.getvalue()
    text = seen(written, 200) if terminal else written
    assert text.count("s3://b/0: StorageDenied: no right") == 2
    assert text.index("no right") < text.index("3 of 4 orphans deleted")
    assert ("orders: deleting" in written) is terminal


def test_too_young_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    config = tmp_path / "archiver.toml"
    text = """
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
[catalog]
uri = "http://127.0.0.1:1"
[registry]
dsn = "postgresql://127.0.0.1:1/none"
"""
    config.write_text(text)
    for options in (["--older-than", "1h"], ["--older-than", "soon"]):
        done = CliRunner().invoke(app, ["orphans", "-c", str(config), *options])
        assert done.exit_code == 2, done.output
    config.write_text(text + '[archive]\norphan_grace = "1h"\n')
    done = CliRunner().invoke(app, ["orphans", "-c", str(config), "--older-than", "1h"])
    assert done.exit_code == 1  # no Postgres there
