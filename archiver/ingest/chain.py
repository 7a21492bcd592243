"""The ranges that one partition's tasks covered, put in order again (docs/concepts.md, steps 1 and 3).

Tasks of one partition end in any order, and one in the middle may fail. What continues the partition is handed on at
once; what lies ahead waits here, its files uploaded, until the gap before it is archived.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from catalog.model import TranslatedRange


class Chain:
    """A partition's ranges in one run of the job. `next` is the offset that comes next.

    Leader epochs never fall along the chain: a range that saw none has that of the one before, not the plan's.
    """

    __slots__ = ("_ahead", "_epoch", "next")

    def __init__(self, start: int) -> None:
        self.next = start
        self._epoch = -1
        self._ahead: list[TranslatedRange] = []

    def push(self, ranges: Iterable[TranslatedRange]) -> tuple[TranslatedRange, ...]:
        """Take what a task covered; gives the ranges that continue the partition now, and those that came too late."""
        self._ahead = sorted((*self._ahead, *ranges), key=lambda one: one.start_offset)
        ready: list[TranslatedRange] = []
        while self._ahead and self._ahead[0].start_offset <= self.next:
            one = self._ahead.pop(0)
            if one.start_offset == self.next:
                self.next = one.end_offset
                self._epoch = max(self._epoch, one.leader_epoch)
                one = replace(one, leader_epoch=self._epoch)
            ready.append(one)
        return tuple(ready)

    def restart(self, start: int) -> tuple[TranslatedRange, ...]:
        """Go on at `start`, where table and staged files end; gives what `push` would."""
        self.next = start
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

    def leftover(self) -> tuple[TranslatedRange, ...]:
        """What still waits for a gap to be archived; it is forgotten here."""
        left, self._ahead = tuple(self._ahead), []
        return left
