"""Reorder the ranges of a partition's tasks (docs/concepts.md, steps 1 and 3). Ranges after a gap wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from catalog.model import PartitionOffset, TranslatedRange


class SameLog(Protocol):
    def __call__(self, place: PartitionOffset, later: int, /) -> bool: ...


class FinishedRanges:
    """A partition's ranges in one run, up to `next`.

    Tasks may read different logs after an unclean election. When the epoch changes, `same_log` decides; a falling
    epoch never continues. Discontinuous and later ranges are dropped, and `torn` is set until `restart`.
    """

    __slots__ = ("_ahead", "_epoch", "_head", "_same_log", "next", "torn")

    def __init__(self, start: int, same_log: SameLog) -> None:
        self.next = start
        self.torn = False
        self._same_log = same_log
        self._epoch = -1
        self._head: int | None = start
        self._ahead: list[TranslatedRange] = []

    def push(self, ranges: Iterable[TranslatedRange]) -> tuple[TranslatedRange, ...]:
        """Return ranges that continue the partition now, and late ones."""
        self._ahead = sorted((*self._ahead, *ranges), key=lambda range_: range_.start_offset)
        ready: list[TranslatedRange] = []
        while self._ahead and self._ahead[0].start_offset <= self.next:
            range_ = self._ahead.pop(0)
            if range_.start_offset == self.next:
                if not self._continues(range_):
                    self._ahead, self.torn = [], True
                    break
                self.next = range_.end_offset
                self._epoch = max(self._epoch, range_.leader_epoch)
                range_ = replace(range_, leader_epoch=self._epoch)
            ready.append(range_)
        return tuple(ready)

    def restart(self, start: int, *, epoch: int = -1) -> tuple[TranslatedRange, ...]:
        """Continue after table and staged files; return as `push`."""
        ready = self.rejoin(start, epoch=self._epoch if epoch < 0 else epoch)
        self._head, self.torn = start, False
        return ready

    def rejoin(self, start: int, *, epoch: int) -> tuple[TranslatedRange, ...]:
        """Continue after ranges of other processes; return as `push`.

        They may have read another log, so nothing proves continuity.
        """
        self.next, self._epoch = start, epoch
        self._head, self.torn = None, False
        return self.push(())

    def spans(self, end: int) -> tuple[tuple[int, int], ...]:
        missing: list[tuple[int, int]] = []
        at = self.next
        for range_ in self._ahead:
            if at < range_.start_offset:
                missing.append((at, range_.start_offset))
            at = max(at, range_.end_offset)
        if at < end:
            missing.append((at, end))
        return tuple(missing)

    @property
    def is_waiting(self) -> bool:
        return bool(self._ahead)

    def leftover(self) -> tuple[TranslatedRange, ...]:
        left, self._ahead = tuple(self._ahead), []
        return left

    def _continues(self, one: TranslatedRange) -> bool:
        """Within an epoch continuity is certain: a record implies all before it."""
        if one.start_offset == self._head or self._epoch in (-1, one.leader_epoch):
            return True
        position = PartitionOffset(next_offset=self.next, leader_epoch=self._epoch)
        return one.leader_epoch > self._epoch and self._same_log(position, one.leader_epoch)


@dataclass(slots=True)
class PartitionRun:
    """`finished` is None if nothing was planned.

    `until` is the first seen log end, -1 if unknown; `rejected` are starts of ranges that the fence refused.
    """

    finished: FinishedRanges | None = None
    until: int = -1
    in_table: int = 0
    rejected: set[int] = field(default_factory=set)

    @property
    def ranges(self) -> FinishedRanges:
        assert self.finished is not None
        return self.finished

    def ends_at(self, offset: int) -> None:
        if self.until < 0:
            self.until = offset
