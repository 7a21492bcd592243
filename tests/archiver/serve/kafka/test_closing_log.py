"""Log lines of closed connections."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from archiver.serve.kafka.closing_log import ClosingLog


class Later:
    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def __call__(self, _seconds: float, call: Callable[[], None]) -> None:
        self.calls.append(call)


def test_lines_of_an_address_are_bounded_and_the_rest_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    later = Later()
    log = ClosingLog(later)
    for number in range(1000):
        log.write(f"192.0.2.1:{number}", "the frame is wrong")
    log.write("192.0.2.2:1", "it doesn't read its responses")
    assert log.closed == 1001
    assert len(caplog.messages) == 6
    assert caplog.messages[0] == "connection of 192.0.2.1:0 closed: the frame is wrong"
    assert not any(record.exc_info for record in caplog.records)
    (end,) = later.calls
    end()
    assert caplog.messages[6:] == [
        "995 more connections of 192.0.2.1 closed within a minute; the last: the frame is wrong"
    ]
    log.write("192.0.2.1:1", "the frame is wrong")
    assert len(later.calls) == 2


def test_lines_of_many_addresses_are_bounded_too(caplog: pytest.LogCaptureFixture) -> None:
    later = Later()
    log = ClosingLog(later)
    for number in range(5000):
        log.write(f"[2001:db8::{number:x}]:1", "the frame is wrong")
    assert len(caplog.messages) == 100
    later.calls[0]()
    assert len(caplog.messages) == 106
    assert "more connections of other addresses closed within a minute" in caplog.messages[-1]
