"""The screen of a run."""

from __future__ import annotations

import io
import json

import pytest

from archiver.errors import BrokerUnavailable
from archiver.ingest.events import Failed, RunFinished
from archiver.ingest.report import JobReport, PartitionReport, TopicReport
from archiver.terminal.archive_screen import ArchiveScreen
from archiver.terminal.console import TextConsole
from archiver.terminal.json_lines import JsonLines
from tests.support.archive.job_events import LOSS, play
from tests.support.terminal.screen import seen

AWAY = JobReport(topics=(), waves=0, seconds=4.0, error=BrokerUnavailable("No broker answers", addresses="127.0.0.1:9"))


@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_is_told(terminal: bool) -> None:
    out = io.StringIO()
    with ArchiveScreen(TextConsole(file=out, force_terminal=terminal, width=160)) as observer:
        play(observer)
    text = " ".join((seen(out.getvalue(), 160) if terminal else out.getvalue()).split())
    for part in (
        "orders into kafka.orders",
        "orders: committed 90 records",
        "orders-1: recorded as lost: offsets [10, 50)",
        "orders-1: DataLoss: Records were deleted topic: orders partition: 1",
        "orders: going on with the schemas last known: SchemaRegistryUnavailable: nobody answers",
        "90 records",
        "with failures",
        "Failed (see above): orders-1",
        "orders: schema version 2 is new: + val.note (id 107) string",
        "orders: 60 of 90 values have fields that the schema doesn't know: 33.33 % of the bytes",
        "orders: 90 values: 1 not decoded, 3 decoded and kept raw, 60 with unknown fields (33.33 % of the bytes)",
        "4.44 %",
    ):
        assert part in text
    assert "Wave 1: 2 tasks for 1 partition of 1 topic" in out.getvalue()
    assert ("90 of 200 offsets" in out.getvalue()) is terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_what_ended_a_whole_run_is_told(terminal: bool) -> None:
    out = io.StringIO()
    with ArchiveScreen(TextConsole(file=out, force_terminal=terminal, width=160)) as observer:
        observer(RunFinished(report=AWAY))
    text = " ".join((seen(out.getvalue(), 160) if terminal else out.getvalue()).split())
    assert "The run ended early: BrokerUnavailable: No broker answers addresses: 127.0.0.1:9" in text
    assert "0 records in 4.0 s, with failures" in text


def test_machines_are_told_too() -> None:
    out = io.StringIO()
    observer = JsonLines(ArchiveScreen.lines, out)
    observer(RunFinished(report=AWAY))
    observer(RunFinished(report=JobReport(topics=(), waves=0, seconds=4.0)))
    away, fine = map(json.loads, out.getvalue().splitlines())
    assert (away["event"], away["succeeded"]) == ("finished", False)
    assert away["error"]["kind"] == "BrokerUnavailable"
    assert away["error"]["context"] == {"addresses": "127.0.0.1:9"}
    assert away["error"]["retryable"]
    assert (fine["succeeded"], fine["error"]) == (True, None)


def test_a_failure_that_goes_on_is_told_in_a_line_a_round() -> None:
    out = io.StringIO()
    failed = Failed(topic="orders", partition=1, error=LOSS)
    topic = TopicReport(topic="orders", table="kafka.orders", partitions=(PartitionReport(partition=1, error=LOSS),))
    with ArchiveScreen(TextConsole(file=out, force_terminal=True, width=160), repeats=True) as observer:
        for _ in range(3):
            observer(failed)
            observer(RunFinished(report=JobReport(topics=(topic,), waves=0, seconds=1.0)))
        observer(RunFinished(report=JobReport(topics=(), waves=0, seconds=1.0)))
        observer(failed)
    text = seen(out.getvalue(), 160)
    assert text.count("orders-1: DataLoss: Records were deleted") == 2  # at first, and after a round without it
    assert text.count("orders-1: DataLoss, as before") == 2
    assert text.count("0 records in 1.0 s, with failures") == 3
    assert "kept raw" not in text


def test_an_idle_job_prints_a_line_an_hour() -> None:
    out, now = io.StringIO(), [0.0]
    idle = RunFinished(report=JobReport(topics=(), waves=0, seconds=0.2))
    topic = TopicReport(
        topic="orders", table="kafka.orders", partitions=(PartitionReport(partition=0, records=5, to_offset=5),)
    )
    console = TextConsole(file=out, width=160)
    with ArchiveScreen(console, repeats=True, clock=lambda: now[0]) as observer:
        for _ in range(480):  # two hours
            observer(idle)
            now[0] += 15.0
        assert out.getvalue().count("nothing new") == 2
        observer(RunFinished(report=JobReport(topics=(topic,), waves=1, seconds=0.2)))
        observer(idle)
    assert out.getvalue().count("nothing new") == 3


def test_an_outage_and_its_end_are_printed() -> None:
    out, now = io.StringIO(), [0.0]
    with ArchiveScreen(TextConsole(file=out, width=160), repeats=True, clock=lambda: now[0]) as observer:
        for _ in range(4):
            observer(RunFinished(report=AWAY))
            now[0] += 15.0
        observer(RunFinished(report=JobReport(topics=(), waves=0, seconds=0.2)))
    text = out.getvalue()
    assert text.count("BrokerUnavailable: No broker answers") == 1
    assert text.count("BrokerUnavailable, as before") == 3
    assert text.count("back again after 1 min 0 s") == 1


def test_topics_without_records_have_no_line() -> None:
    out = io.StringIO()
    idle, orders = (TopicReport(topic=name, table=f"kafka.{name}", partitions=()) for name in ("idle", "orders"))
    failed = TopicReport(topic="lost", table="kafka.lost", partitions=(PartitionReport(partition=1, error=LOSS),))
    with ArchiveScreen(TextConsole(file=out, width=160)) as observer:
        observer(RunFinished(report=JobReport(topics=(idle, orders, failed), waves=0, seconds=1.0)))
    assert "lost: 0 records" in out.getvalue()
    assert "orders: 0 records" not in out.getvalue()
    assert "Nothing new in 2 topics" in out.getvalue()
