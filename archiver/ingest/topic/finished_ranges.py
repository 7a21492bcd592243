"""The ranges that one partition's tasks covered, put in order again (docs/concepts.md, steps 1 and 3).

Tasks of one partition end in any order, and one in the middle may fail. What continues the partition is handed on at
once; what lies ahead waits here, its files uploaded, until the gap before it is archived.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from catalog.model import PartitionOffset, TranslatedRange


class SameLog(Protocol):
    """Asks if one log has a leader epoch right before a place, and a later epoch too; see `continuity.same_log`."""

    def __call__(self, place: PartitionOffset, later: int, /) -> bool:
        """Whether both are of one log."""


class FinishedRanges:
    """A partition's ranges in one run of the job. `next` is the offset that comes next.

    Tasks read one after the other, and an unclean election in between gives the later one another log than the earlier
    one had. So where the epoch changes from range to range, `same_log` is asked; an epoch that falls may not go on.
    What doesn't go on is forgotten with all that lies ahead, to be read anew, and `torn` is set until the next restart.
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
        """Take what a task covered; gives the ranges that continue the partition now, and those that came too late."""
        self._ahead = sorted((*self._ahead, *ranges), key=lambda one: one.start_offset)
        ready: list[TranslatedRange] = []
        while self._ahead and self._ahead[0].start_offset <= self.next:
            one = self._ahead.pop(0)
            if one.start_offset == self.next:
                if not self._continues(one):
                    self._ahead, self.torn = [], True
                    break
                self.next = one.end_offset
                self._epoch = max(self._epoch, one.leader_epoch)
                one = replace(one, leader_epoch=self._epoch)
            ready.append(one)
        return tuple(ready)

    def restart(self, start: int, *, epoch: int = -1) -> tuple[TranslatedRange, ...]:
        """Go on at `start`, where table and staged files end, in this epoch; gives what `push` would.

        What is read from there on is known to go on: the plan looked at it, and so does the first fetch.
        """
        ready = self.rejoin(start, epoch=self._epoch if epoch < 0 else epoch)
        self._head, self.torn = start, False
        return ready

    def rejoin(self, start: int, *, epoch: int) -> tuple[TranslatedRange, ...]:
        """Go on at `start`, where ranges of others end, in their epoch; gives what `push` would.

        What others read may be of another log, so nothing is known to go on from there.
        """
        self.next, self._epoch = start, epoch
        self._head, self.torn = None, False
        return self.push(())

    def spans(self, end: int) -> tuple[tuple[int, int], ...]:
        """What is missing up to `end`, as half-open spans in order."""
        missing: list[tuple[int, int]] = []
        at = self.next
        for one in self._ahead:
            if at < one.start_offset:
                missing.append((at, one.start_offset))
            at = max(at, one.end_offset)
        if at < end:
            missing.append((at, end))
        return tuple(missing)

    @property
    def is_waiting(self) -> bool:
        """Whether something still waits for a gap to be archived."""
        return bool(self._ahead)

    def leftover(self) -> tuple[TranslatedRange, ...]:
        """What still waits for a gap to be archived; it is forgotten here."""
        left, self._ahead = tuple(self._ahead), []
        return left

    def _continues(self, one: TranslatedRange) -> bool:
        """Whether the range was read from the log that has what comes before it.

        Who has one record of an epoch has all before it; so in one epoch there is nothing to ask.
        """
        if one.start_offset == self._head or self._epoch in (-1, one.leader_epoch):
            return True
        place = PartitionOffset(next_offset=self.next, leader_epoch=self._epoch)
        return one.leader_epoch > self._epoch and self._same_log(place, one.leader_epoch)
