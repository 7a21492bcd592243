"""What a consumer's partitions give, in turn: records, their ends, and a failure once what came before it is given.

Waits where there is nothing yet; which partitions there are, and what is refreshed meanwhile, others decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import repeat
from typing import Any

from confluent_kafka import KafkaError

from archiver.replay.consumer.assignment import Assignment, PartitionState
from archiver.replay.consumer.message import ReplayEvent, ReplayMessage
from archiver.replay.consumer.partitions import PARTITION_EOF, Place
from archiver.replay.consumer.refresher import Refresher


class Delivery:
    """Gives from an assignment. `prepare` is called before each look at it, `refresh` before and while it waits."""

    def __init__(
        self,
        assignment: Assignment,
        refresher: Refresher,
        *,
        tells_ends: bool,
        prepare: Callable[[], None],
        refresh: Callable[[], None],
    ) -> None:
        self._assignment = assignment
        self._refresher = refresher
        self._tells_ends = tells_ends
        self._prepare = prepare
        self._refresh = refresh
        self._events: list[ReplayMessage] = []
        self._current: PartitionState | None = None
        self._failure: Exception | None = None

    def clear(self) -> None:
        """Forget events that weren't given."""
        self._events.clear()

    def forget(self, place: Place) -> None:
        """Forget those of one partition."""
        self._events = [event for event in self._events if (event.topic(), event.partition()) != place]

    def at_hand(self) -> ReplayMessage | None:
        """The next record of the batch that is being given; None where there is no such batch."""
        state = self._current
        if state is None or state.view is None or state.is_paused or self._events:
            return None
        view, row = state.view, state.row
        state.advance(1)
        return ReplayMessage(view, row)

    def take(self, limit: int, deadline: float | None) -> list[ReplayMessage]:
        """The next `limit` records and events, or what came until `deadline` (time.monotonic; None: no limit).

        A failure after some came is raised by the next call, so that none of them is lost.
        """
        if self._failure is not None:
            failed, self._failure = self._failure, None
            raise failed
        found: list[ReplayMessage] = []
        try:
            self._refresh()
            while len(found) < limit:
                found += self._next(limit - len(found))
                if len(found) < limit and not self._wait(deadline):
                    break
        except Exception as error:
            if not found:
                raise
            self._failure = error
        return found

    def _next(self, limit: int) -> list[ReplayMessage]:
        """Return what can be given at once: events, else records of one partition."""
        self._prepare()
        state = None if self._events else self._assignment.ready(is_running)
        if state is None or state.view is None:
            if not self._events:
                self._report_ends()
            taken, self._events = self._events[:limit], self._events[limit:]
            return taken
        self._current = state
        view, first = state.view, state.row
        rows = range(first, min(len(view), first + limit))
        state.advance(len(rows))
        return list(map(ReplayMessage, repeat(view), rows))

    def _wait(self, deadline: float | None) -> bool:
        """Wait for a read, a refresh, or the time for one; False when the deadline is over."""
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            return False
        self._refresh()
        waited: list[Future[Any]] = [*self._assignment.under_way(is_running), *self._refresher.under_way]
        until = [each for each in (deadline, self._refresher.due) if each is not None]
        pause = max(0.0, min(until) - now) if until else None
        if waited:
            wait(waited, timeout=pause, return_when=FIRST_COMPLETED)
        else:
            time.sleep(pause or 0.0)
        return True

    def _report_ends(self) -> None:
        if not self._tells_ends:
            return
        for state in self._assignment:
            if not state.is_paused and state.is_at_end and state.eof_reported != state.end:
                state.eof_reported = state.end
                self._events.append(ReplayEvent(*state.place, state.end, KafkaError(PARTITION_EOF)))


def is_running(state: PartitionState) -> bool:
    """Whether the partition isn't paused."""
    return not state.is_paused
