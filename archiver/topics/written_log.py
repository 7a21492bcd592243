"""Wait until acknowledged rows of a topic are in its table, and not in its write-ahead log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

from archiver.errors import LogNotWritten
from catalog.model import TopicRow
from catalog.registry import Registry
from catalog.registry.intake_logs import IntakeLogRow

SILENT_SECONDS: Final = 60.0
"""A server reports every five seconds, also while it writes files."""
WAIT_SECONDS: Final = 600.0
_LOOK_SECONDS: Final = 0.5


class Clock(Protocol):
    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


def await_written(registry: Registry, topic: TopicRow, *, purpose: str, clock: Clock = time) -> None:
    """Return once the table has all rows acknowledged before the call.

    Raises LogNotWritten if the log is being given up, or its server doesn't run, or doesn't write them in ten
    minutes.
    """
    log = registry.intake.of_topics([topic]).get(topic.id)
    if log is None or log.drained:
        return
    if log.is_given_up:
        raise LogNotWritten(
            f"the topic's write-ahead log is being given up. {purpose} Run `archiver abandon` again if it doesn't run"
            " any more, then run this command again",
            topic=topic.topic,
            log=log.folder,
        )
    if log.silent_seconds > SILENT_SECONDS:
        raise _not_written(topic, log, f"its server has not reported for {log.silent_seconds:,.0f} seconds", purpose)
    number = registry.intake.request(topic)
    _wait(lambda: _is_written(registry, topic, number), lambda: _late(topic, log, purpose), clock)


def _wait(is_over: Callable[[], bool], late: Callable[[], LogNotWritten], clock: Clock) -> None:
    ends_at = clock.monotonic() + WAIT_SECONDS
    while not is_over():
        if clock.monotonic() >= ends_at:
            raise late()
        clock.sleep(_LOOK_SECONDS)


def _is_written(registry: Registry, topic: TopicRow, number: int) -> bool:
    log = registry.intake.of_topics([topic]).get(topic.id)
    return log is None or log.drained or log.written >= number


def _late(topic: TopicRow, log: IntakeLogRow, purpose: str) -> LogNotWritten:
    return _not_written(topic, log, f"its server has not written them within {WAIT_SECONDS:,.0f} seconds", purpose)


def _not_written(topic: TopicRow, log: IntakeLogRow, reason: str, purpose: str) -> LogNotWritten:
    return LogNotWritten(
        f"acknowledged rows may wait in a write-ahead log, and {reason}. {purpose} Start `archiver serve flight` with"
        " this log, or stop it in order, then run the command again",
        topic=topic.topic,
        log=log.folder,
        reported_at=log.reported_at.isoformat(timespec="seconds"),
    )
