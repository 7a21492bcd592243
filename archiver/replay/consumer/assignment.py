"""The partitions a consumer reads: where each stands, what is read ahead, and whose turn it is.

Partitions take turns batch by batch, at most `parallelism` of them reading ahead at a time. No Kafka here, no waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field

import pyarrow as pa

from archiver.archive.topic_archive import TopicArchive
from archiver.replay.consumer.feed import Feed
from archiver.replay.consumer.message import BatchView
from archiver.replay.consumer.partitions import Place


@dataclass(slots=True, eq=False)
class PartitionState:
    """One assigned partition: `position` is the next offset to look for, `consumed` the one after the last delivered.

    `view` is the batch being delivered, from `row` on; `feed` reads ahead, up to and without `feed_end`.
    """

    archive: TopicArchive
    partition: int
    position: int
    is_paused: bool = False
    consumed: int | None = None
    eof_reported: int | None = None
    view: BatchView | None = None
    row: int = 0
    feed: Feed | None = field(default=None, repr=False)
    feed_end: int = 0

    @property
    def place(self) -> Place:
        """Topic and partition."""
        return self.archive.topic, self.partition

    @property
    def end(self) -> int:
        """The offset after the last archived one, as of the last refresh."""
        return self.archive.end(self.partition)

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left to read until the archive grows."""
        return self.view is None and self.feed is None and self.position >= self.end

    def move(self, offset: int) -> None:
        """Go on from another offset."""
        self.drop()
        self.position = offset
        self.consumed = None
        self.eof_reported = None

    def drop(self) -> None:
        """Forget what was read ahead."""
        if self.feed is not None:
            self.feed.close()
        self.feed, self.view, self.row = None, None, 0

    def open(self, executor: Executor) -> None:
        """Start to read ahead from the position."""
        self.feed_end = self.end
        self.feed = Feed(self.archive.records(self.partition, self.position, self.feed_end), executor)

    def fill(self) -> bool:
        """Take the batch that was read ahead; False at the end of the stream, with the position moved past its gap.

        Raises what reading raised; the next call starts anew from the position.
        """
        assert self.feed is not None
        try:
            batch = self.feed.take()
        except BaseException:
            self.drop()
            raise
        if batch is None:
            self.drop()
            self.position = max(self.position, self.feed_end)
            return False
        self.view, self.row = BatchView(self.archive.topic, self.partition, batch), 0
        return True

    def advance(self, rows: int) -> None:
        """Count `rows` of the view as delivered."""
        assert self.view is not None
        self.row += rows
        self.position = self.consumed = self.view.offsets[self.row - 1] + 1
        if self.row == len(self.view):
            self.view, self.row = None, 0

    def rest(self) -> pa.RecordBatch:
        """What of the view has not been delivered."""
        assert self.view is not None
        return self.view.batch.slice(self.row)


class Assignment:
    """The assigned partitions, in the order of their turns."""

    def __init__(self, executor: Executor, parallelism: int) -> None:
        self._executor = executor
        self._parallelism = parallelism
        self._states: dict[Place, PartitionState] = {}
        self._turns: deque[PartitionState] = deque()

    def __iter__(self) -> Iterator[PartitionState]:
        return iter(self._states.values())

    def __len__(self) -> int:
        return len(self._states)

    def __contains__(self, place: Place) -> bool:
        return place in self._states

    def find(self, place: Place) -> PartitionState | None:
        """Find an assigned partition."""
        return self._states.get(place)

    def add(self, state: PartitionState) -> None:
        """Assign a partition."""
        self._states[state.place] = state
        self._turns.append(state)

    def remove(self, place: Place) -> None:
        """Unassign a partition."""
        state = self._states.pop(place)
        self._turns.remove(state)
        state.drop()

    def clear(self) -> None:
        """Unassign every partition."""
        for place in list(self._states):
            self.remove(place)

    def ready(self, wanted: Callable[[PartitionState], bool]) -> PartitionState | None:
        """Return the next partition with a view to deliver from, of those `wanted`; None where reading has to go on.

        Starts to read ahead wherever there is room.
        """
        self._read_ahead(wanted)
        for state in tuple(self._turns):
            if not wanted(state):
                continue
            if state.view is not None:
                return state
            while state.feed is not None and state.feed.future.done():
                self._turns.remove(state)
                self._turns.append(state)
                if state.fill():
                    return state
                self._read_ahead(wanted)
        return None

    def under_way(self, wanted: Callable[[PartitionState], bool]) -> list[Future[pa.RecordBatch | None]]:
        """The reads that are going on."""
        return [state.feed.future for state in self._turns if state.feed is not None and wanted(state)]

    def _read_ahead(self, wanted: Callable[[PartitionState], bool]) -> None:
        active = sum(state.feed is not None and wanted(state) for state in self._turns)
        for state in self._turns:
            if active >= self._parallelism:
                return
            if state.feed is None and state.view is None and wanted(state) and state.position < state.end:
                state.open(self._executor)
                active += 1
