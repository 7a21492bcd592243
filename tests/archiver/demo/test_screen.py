"""The demo's summary fits a terminal."""

from __future__ import annotations

from io import StringIO

from archiver.demo.questions import QUESTIONS
from archiver.demo.screen import Summary, show_answer, show_summary
from archiver.terminal.console import TextConsole


def test_every_value_is_seen_on_eighty_columns() -> None:
    summary = Summary(
        records=336_848,
        payload_bytes=23_000_000,
        log_bytes=12_700_000,
        stored_bytes=5_900_000,
        files=30,
        raw_values=6,
        raw_share=0.0000178,
        digest="0123456789abcdef0123456789abcdef",
        seconds={f"Ask Spark SQL: {question.text}": 9.5 for question in QUESTIONS},
        total_seconds=59.9,
    )
    out = StringIO()
    show_summary(TextConsole(file=out, width=80), summary)
    text = out.getvalue()
    for value in ("336,848", "23.0", "12.7", "5.9", "6 (0.0018%)", summary.digest, "equal", "9.5 s", "59.9 s", "yes"):
        assert value in text


def test_an_answer_shows_its_numbers_with_separators() -> None:
    out = StringIO()
    show_answer(TextConsole(file=out, width=80), "Who?", ["carrier", "minutes_late"], [("EV", 54_173), ("MQ", 1.5)])
    text = out.getvalue()
    assert "minutes late" in text
    assert "54,173" in text
