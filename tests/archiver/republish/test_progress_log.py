"""The log of progress shows its completeness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from archiver.errors import ReplayError
from archiver.republish import progress_log
from archiver.republish.offset_map import PlacesInTarget
from archiver.republish.offset_runs import Runs
from archiver.republish.progress_log import Begun, Course, Entry, MovedUpTo, ProgressLog

COURSE = Course(cluster_id="c", topic="t", table_id="1", target="copy", target_id="2", start="", where="")


class LogOfOne:
    def __init__(self, count: int) -> None:
        self._count = count

    def list_offsets(self, _topic: str, partitions: tuple[int, ...], at: str) -> dict[int, int]:
        return dict.fromkeys(partitions, 0 if at == "earliest" else self._count)

    def described(self, _topic: str) -> Any:
        return SimpleNamespace(topic_id=None)


@pytest.fixture
def log_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Entry]], ProgressLog]:
    def made(entries: list[Entry]) -> ProgressLog:
        brokers: Any = LogOfOne(len(entries))
        log = ProgressLog(brokers, "progress", "orders-to-copy")

        def read(_partition: int, _start: int, _end: int) -> Iterator[Any]:
            yield SimpleNamespace(records=log.batch(entries).records)

        monkeypatch.setattr(progress_log, "log_reader", lambda *_: read)
        return log

    return made


def begun(partition: int, offset: int = 0) -> Begun:
    return Begun(partition=partition, offset=offset, course=COURSE)


def moved(partition: int, sequence: int) -> MovedUpTo:
    runs = Runs.of(np.arange(10 * (sequence - 1), 10 * sequence, dtype=np.int64), 20 * sequence)
    return MovedUpTo(partition=partition, sequence=sequence, next_offset=10 * sequence, runs=runs)


def test_a_whole_log_is_read(log_of: Callable[[list[Entry]], ProgressLog]) -> None:
    log = log_of([begun(0), begun(3, 5), moved(0, 1), moved(3, 1), moved(0, 2)])
    assert [type(entry) for entry in log.entries()] == [Begun, Begun, MovedUpTo, MovedUpTo, MovedUpTo]
    assert {partition: progress.next_offset for partition, progress in log.read().items()} == {0: 20, 3: 10}


@pytest.mark.parametrize(
    "entries",
    [[moved(0, 1)], [begun(0), moved(0, 2)], [begun(0), moved(0, 1), begun(1), moved(0, 3)]],
)
def test_every_reader_sees_that_entries_are_lost(
    log_of: Callable[[list[Entry]], ProgressLog], entries: list[Entry]
) -> None:
    log = log_of(entries)
    readers = (
        log.read,
        log.peek,
        lambda: [*log.entries()],
        lambda: PlacesInTarget({0: frozenset()}, {0: 0}).read(log.entries()),
    )
    for read in readers:
        with pytest.raises(ReplayError, match="lost entries") as lost:
            read()
        assert lost.value.context["partition"] == 0
