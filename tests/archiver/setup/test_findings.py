"""Checks have time limits."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from archiver.config.model import ArchiveSection
from archiver.errors import BrokerUnavailable
from archiver.setup.findings import Check, CheckOutcome, Finding
from archiver.setup.machine_checks import look_at_java, look_at_spool
from archiver.terminal.check_screen import check_json, finding_lines, verdict


def text_of(view: RenderableType) -> str:
    out = io.StringIO()
    Console(file=out, width=200).print(view)
    return out.getvalue()


def test_findings_before_an_error_stay() -> None:
    def look() -> Iterator[Finding]:
        yield Finding(part="Kafka", detail="there")
        raise BrokerUnavailable("gone", broker="b")

    first, second = Check(part="Kafka", look=look, seconds=30).findings()
    assert (first.outcome, first.detail) == (CheckOutcome.OK, "there")
    assert (second.failed, type(second.error)) == (True, BrokerUnavailable)


def test_an_error_that_nobody_foresaw_is_a_finding() -> None:
    def look() -> Iterator[Finding]:
        raise ZeroDivisionError("odd")
        yield

    (finding,) = Check(part="Store", look=look, seconds=30).findings()
    assert finding.failed
    assert "ZeroDivisionError: odd" in str(finding.error)


def test_a_check_that_hangs_is_given_up() -> None:
    over = threading.Event()

    def look() -> Iterator[Finding]:
        yield Finding(part="Catalog", detail="first")
        over.wait(60)
        yield Finding(part="Catalog", detail="too late")

    try:
        first, second = Check(part="Catalog", look=look, seconds=0.2).findings()
    finally:
        over.set()
    assert first.detail == "first"
    assert "No answer within 0.2 s" in str(second.error)
    assert second.seconds >= 0.2


def test_a_spool_that_is_not_there_is_tried_and_removed_again(tmp_path: Path) -> None:
    section = ArchiveSection(spool=tmp_path / "a" / "b")
    (finding,) = look_at_spool(section)
    assert finding.outcome is CheckOutcome.OK
    assert "mode 0700, made when it is needed" in finding.detail
    assert list(tmp_path.iterdir()) == []


def test_a_spool_without_room_is_a_warning(tmp_path: Path) -> None:
    (finding,) = look_at_spool(ArchiveSection(spool=tmp_path, spool_size=f"{1 << 60}B"))
    assert finding.outcome is CheckOutcome.WARNING
    assert "Give it room" in finding.detail


def test_spark_connect_needs_no_java() -> None:
    (finding,) = look_at_java({"remote": "sc://somewhere"})
    assert finding.outcome is CheckOutcome.SKIPPED


FOUND = (
    Finding(part="Kafka", detail="cluster [abc]", seconds=0.25),
    Finding(
        part="Kafka",
        subject="topic [x]",
        outcome=CheckOutcome.FAILED,
        error=BrokerUnavailable("no [one]", broker="b:1"),
    ),
    Finding(part="Spool", outcome=CheckOutcome.WARNING, detail="little room"),
)


def test_text_keeps_brackets_and_names_what_failed() -> None:
    text = "".join(text_of(finding_lines(finding)) for finding in FOUND)
    assert "cluster [abc]" in text
    assert "topic [x]: BrokerUnavailable: no [one]" in text
    assert "broker: b:1" in text
    assert "1 of 3 failed, 1 warning: Kafka." in text_of(verdict(FOUND))
    assert "All is well, 1 warning." in text_of(verdict(FOUND[::2]))


@pytest.mark.parametrize(("found", "is_ok"), [(FOUND, False), (FOUND[::2], True)])
def test_json_says_whether_all_is_well(found: tuple[Finding, ...], is_ok: bool) -> None:
    document = check_json(found)
    assert document["ok"] is is_ok
    assert [finding["outcome"] for finding in document["checks"]] == [str(finding.outcome) for finding in found]
