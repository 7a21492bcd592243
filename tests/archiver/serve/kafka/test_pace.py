"""The pace of a client."""

from __future__ import annotations

from archiver.serve.kafka.pace import ClientPace


def test_the_time_between_an_answer_and_the_next_request_counts() -> None:
    pace = ClientPace()
    assert pace.takes_soon(1000.0) is None
    pace.note_answer(512 << 10, 1000.0)
    assert pace.takes_soon(1016.0) == 64 << 10
    pace.note_answer(1 << 20, 1500.0)
    assert pace.takes_soon(1500.25) == 8 << 20
    assert (pace.takes_soon(1500.0) or 0) > 1 << 30, "at once"


def test_an_answer_without_records_tells_nothing() -> None:
    pace = ClientPace()
    pace.note_answer(100, 10.0)
    pace.note_answer(0, 20.0)
    assert pace.takes_soon(21.0) is None
