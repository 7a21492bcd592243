"""What people see of a run: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from archiver.errors import BrokerUnavailable
from archiver.ingest.events import RunFinished
from archiver.ingest.report import JobReport
from archiver.observe.archive_json import archive_lines
from archiver.observe.archive_screen import ArchiveScreen
from archiver.observe.json_lines import JsonLines
from tests.support.archive.job_events import play

AWAY = JobReport(topics=(), waves=0, seconds=4.0, error=BrokerUnavailable("No broker answers", addresses="127.0.0.1:9"))


@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_is_told(terminal: bool) -> None:
    out = io.StringIO()
    with ArchiveScreen(Console(file=out, force_terminal=terminal, width=160, color_system=None)) as observer:
        play(observer)
    text = " ".join(out.getvalue().split())
    for part in (
        "orders into kafka.orders",
        "committed 90 records",
        "recorded as lost [10, 50)",
        "DataLoss: Records",
        "orders: going on with the schemas last known: nobody answers",
    ):
        assert part in text
    assert "Wave 1: 2 tasks for 1 partitions of 1 topics" in text
    assert ("/200 offsets" in text) is terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_what_ended_a_whole_run_is_told(terminal: bool) -> None:
    out = io.StringIO()
    with ArchiveScreen(Console(file=out, force_terminal=terminal, width=160, color_system=None)) as observer:
        observer(RunFinished(report=AWAY))
    text = " ".join(out.getvalue().split())
    assert "BrokerUnavailable: No broker answers [addresses='127.0.0.1:9']" in text
    assert "0 records in 4.0 s, with failures" in text


def test_machines_are_told_too() -> None:
    out = io.StringIO()
    observer = JsonLines(archive_lines, out)
    observer(RunFinished(report=AWAY))
    observer(RunFinished(report=JobReport(topics=(), waves=0, seconds=4.0)))
    away, fine = map(json.loads, out.getvalue().splitlines())
    assert (away["event"], away["succeeded"]) == ("finished", False)
    assert away["error"]["kind"] == "BrokerUnavailable"
    assert away["error"]["context"] == {"addresses": "127.0.0.1:9"}
    assert away["error"]["retryable"]
    assert (fine["succeeded"], fine["error"]) == (True, None)
