"""A client's pace is what it took over the time until it asked again."""

from __future__ import annotations

from archiver.serve.kafka.pace import Pace


def test_the_time_between_an_answer_and_the_next_request_counts() -> None:
    pace = Pace()
    assert pace.asked(1000.0) is None
    pace.answered(512 << 10, 1000.0)
    assert pace.asked(1016.0) == 64 << 10
    pace.answered(1 << 20, 1500.0)
    assert pace.asked(1500.25) == 8 << 20
    assert (pace.asked(1500.0) or 0) > 1 << 30, "at once"


def test_an_answer_without_records_tells_nothing() -> None:
    pace = Pace()
    pace.answered(100, 10.0)
    pace.answered(0, 20.0)
    assert pace.asked(21.0) is None
