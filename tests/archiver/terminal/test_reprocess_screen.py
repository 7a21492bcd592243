"""The screen of a reprocessing."""

from __future__ import annotations

import io
import json
from collections import Counter

import pytest

from archiver.errors import UpkeepError
from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import JsonLines
from archiver.terminal.reprocess_screen import ReprocessScreen
from archiver.upkeep.reprocess.file import ReprocessedFile
from archiver.upkeep.reprocess.report import (
    FileFailed,
    FileReprocessed,
    ReprocessEvent,
    ReprocessFinished,
    ReprocessObserver,
    ReprocessPlanned,
    ReprocessReport,
)
from tests.support.terminal.screen import seen

TRUNCATED = ("value", "truncated")
RESULT = ReprocessedFile(path="s3://b/1", rows=9, found=Counter({TRUNCATED: 3}), mended=Counter({TRUNCATED: 2}))
ERROR = UpkeepError("the file belongs to an earlier partitioning", file="s3://b/2")
REPORT = ReprocessReport(
    topic="orders",
    table="kafka.orders",
    dry_run=False,
    schema_version=4,
    results=(RESULT,),
    failures={"s3://b/2": ERROR},
    seconds=1.5,
    commit_id="c",
)


def play(observer: ReprocessObserver) -> None:
    events: tuple[ReprocessEvent, ...] = (
        ReprocessPlanned(files=2),
        FileReprocessed(result=RESULT),
        FileFailed(path="s3://b/2", error=ERROR),
        ReprocessFinished(report=REPORT),
    )
    for event in events:
        observer(event)


@pytest.mark.parametrize("terminal", [True, False])
def test_reprocess_failures_come_first_and_the_report_last(terminal: bool) -> None:
    out = io.StringIO()
    with ReprocessScreen(TextConsole(file=out, force_terminal=terminal, width=160)) as screen:
        play(screen)
    text = seen(out.getvalue(), 160) if terminal else out.getvalue()
    assert text.index("s3://b/2: UpkeepError: the file belongs") < text.index("orders in kafka.orders")
    assert "1 of 2 files rewritten in commit c (schema version 4), 1.5 s" in text
    assert ("of 2 files  " in out.getvalue()) is terminal


def test_a_machine_is_told_once() -> None:
    out = io.StringIO()
    play(JsonLines(ReprocessScreen.lines, out))
    line, finished = map(json.loads, out.getvalue().splitlines())
    assert (finished["event"], finished["succeeded"], finished["dry_run"]) == ("finished", False, False)
    del line["time"]
    assert line == {
        "event": "reprocessed",
        "topic": "orders",
        "table": "kafka.orders",
        "schema_version": 4,
        "commit_id": "c",
        "schema_registry_down": None,
        "files_read": 2,
        "files_rewritten": 1,
        "errors": [{"part": "value", "code": "truncated", "found": 3, "mended": 2}],
        "failures": [
            {
                "file": "s3://b/2",
                "error": {
                    "kind": "UpkeepError",
                    "message": "the file belongs to an earlier partitioning",
                    "context": {"file": "s3://b/2"},
                    "retryable": False,
                },
            }
        ],
    }
