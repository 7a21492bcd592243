"""The loop of `poll` and `consume`: records, then ends of partitions, else a wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import repeat
from typing import Any

from confluent_kafka import KafkaError

from archiver.replay.consumer.assignment import AssignedReaders
from archiver.replay.consumer.confluent_types import PARTITION_EOF, PartitionId
from archiver.replay.consumer.message import ReplayEvent, ReplayMessage
from archiver.replay.consumer.open_archives import Refresher
from archiver.replay.consumer.partition_reader import PartitionReader


class PollLoop:
    """`prepare` is called before each pass, `refresh` before and during a wait."""

    def __init__(
        self,
        assignment: AssignedReaders,
        refresher: Refresher,
        *,
        reports_ends: bool,
        prepare: Callable[[], None],
        refresh: Callable[[], None],
    ) -> None:
        self._assignment = assignment
        self._refresher = refresher
        self._reports_ends = reports_ends
        self._prepare = prepare
        self._refresh = refresh
        self._events: list[ReplayMessage] = []
        self._current: PartitionReader | None = None
        self._failure: Exception | None = None

    def forget_events(self) -> None:
        self._events.clear()

    def forget_events_of(self, partition: PartitionId) -> None:
        self._events = [event for event in self._events if (event.topic(), event.partition()) != partition]

    def next_of_batch(self) -> ReplayMessage | None:
        reader = self._current
        if reader is None or reader.batch is None or reader.is_paused or self._events:
            return None
        batch, row = reader.batch, reader.row
        reader.advance(1)
        return ReplayMessage(batch, row)

    def consume(self, limit: int, deadline: float | None) -> list[ReplayMessage]:
        """Return records and events, fewer at `deadline` (of `time.monotonic`).

        An error after some records is raised by the next call.
        """
        if self._failure is not None:
            failed, self._failure = self._failure, None
            raise failed
        messages: list[ReplayMessage] = []
        try:
            self._refresh()
            while len(messages) < limit:
                messages += self._next(limit - len(messages))
                if len(messages) < limit and not self._wait(deadline):
                    break
        except Exception as error:
            if not messages:
                raise
            self._failure = error
        return messages

    def _next(self, limit: int) -> list[ReplayMessage]:
        self._prepare()
        reader = None if self._events else self._assignment.next_ready(_is_running)
        if reader is None or reader.batch is None:
            if not self._events:
                self._report_ends()
            taken, self._events = self._events[:limit], self._events[limit:]
            return taken
        self._current = reader
        batch, first = reader.batch, reader.row
        rows = range(first, min(len(batch), first + limit))
        reader.advance(len(rows))
        return list(map(ReplayMessage, repeat(batch), rows))

    def _wait(self, deadline: float | None) -> bool:
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            return False
        self._refresh()
        waited: list[Future[Any]] = [*self._assignment.running_reads(_is_running), *self._refresher.running]
        until = [moment for moment in (deadline, self._refresher.due) if moment is not None]
        pause = max(0.0, min(until) - now) if until else None
        if waited:
            wait(waited, timeout=pause, return_when=FIRST_COMPLETED)
        else:
            time.sleep(pause or 0.0)
        return True

    def _report_ends(self) -> None:
        if not self._reports_ends:
            return
        for reader in self._assignment:
            if not reader.is_paused and reader.is_at_end and reader.eof_reported != reader.end:
                reader.eof_reported = reader.end
                self._events.append(ReplayEvent(*reader.partition_id, reader.end, KafkaError(PARTITION_EOF)))


def _is_running(reader: PartitionReader) -> bool:
    return not reader.is_paused
