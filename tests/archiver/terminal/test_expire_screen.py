"""The report of a retirement."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from archiver.errors import BadSegment
from archiver.terminal.console import TextConsole
from archiver.terminal.expire_screen import ExpireScreen
from archiver.terminal.json_lines import JsonLines
from archiver.upkeep.retire.report import ExpireEvent, ExpireFailed, ExpireFinished, ExpireReport, TopicRetired
from catalog.ranges.legal_holds import CONFIG_HOLD


def report(**found: Any) -> ExpireReport:
    topic = TopicRetired(topic="orders", table="kafka.orders", **found)
    return ExpireReport(topics=(topic,), dry_run=False, seconds=1.5)


def shown(event: ExpireEvent) -> str:
    console = TextConsole(file=io.StringIO(), width=400)
    ExpireScreen(console)(event)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("found", "succeeded"),
    [
        ({}, True),
        ({"held": {0: "01H"}}, True),
        ({"held": {0: "01H"}, "is_asked": True}, False),
        ({"is_asked": True}, True),
        ({"kept": {0: "s3://b/1"}}, False),
        ({"failures": {"s3://b/1": BadSegment("damaged")}}, False),
        ({"error": BadSegment("damaged")}, False),
    ],
)
def test_what_counts_as_success(found: dict[str, Any], succeeded: bool) -> None:
    assert report(**found).succeeded is succeeded


def test_what_keeps_more_is_told_with_what_to_do() -> None:
    text = shown(ExpireFinished(report=report(held={0: "01H", 1: CONFIG_HOLD}, kept={2: "s3://b/1"})))
    assert "orders: partition 0: hold 01H keeps more than that." in text
    assert "`archiver hold orders --release 01H`" in text
    assert "orders: partition 1: `hold = true` in the topic's section keeps more than that\n" in text
    assert "orders: partition 2: a file that can't go keeps more than that: s3://b/1. The registry doesn't know" in text


def test_a_file_that_failed_is_named_with_its_topic() -> None:
    error = BadSegment("damaged", file="s3://b/1")
    assert "orders: s3://b/1: BadSegment: damaged\n" in shown(
        ExpireFailed(topic="orders", path="s3://b/1", error=error)
    )
    assert "orders: BadSegment: damaged\n" in shown(ExpireFailed(topic="orders", path=None, error=error))


def test_machines_get_a_line_for_each_topic(capsys: pytest.CaptureFixture[str]) -> None:
    failures = {"s3://b/1": BadSegment("damaged", partitions=[1])}
    JsonLines(ExpireScreen.lines)(
        ExpireFinished(report=report(held={0: "01H"}, kept={2: "s3://b/2"}, failures=failures))
    )
    topic, finished = map(json.loads, capsys.readouterr().out.splitlines())
    assert (topic["held_partitions"], topic["kept_partitions"]) == ({"0": "01H"}, {"2": "s3://b/2"})
    (failure,) = topic["failures"]
    error = failure["error"]
    assert (failure["file"], error["kind"], error["context"]) == ("s3://b/1", "BadSegment", {"partitions": "[1]"})
    assert finished["succeeded"] is False
