"""Compute a table's ranges from its journal: commits in any order, with repetitions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from typing import TypeAlias

from catalog.account import acts
from catalog.account.chains import IntervalChains
from catalog.account.interval import Interval
from catalog.journal_entries import JournaledCommit
from catalog.offset_range import HasOffsets, OffsetRange
from catalog.ranges.holes import Acceptance
from catalog.ranges.regrouping import lies_elsewhere, regrouped
from catalog.ranges.replaced_files import ReplacedFile, files_of_other_engines, removal_reason
from catalog.ranges.retirement import is_left_below, retired_below, summed_up
from catalog.ranges.rewrite import Rewrite, RewriteGroup
from catalog.ranges.stored_ranges import StoredRange

_Group: TypeAlias = tuple[str, Rewrite, RewriteGroup]


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentRanges:
    """`erased` are (partition, start, end) with the commit."""

    ranges: tuple[StoredRange, ...] = ()
    account: tuple[Interval, ...] = ()
    first_offsets: Mapping[int, int] = field(default_factory=dict)
    erased: tuple[tuple[str, tuple[int, int, int]], ...] = ()
    replaced: tuple[ReplacedFile, ...] = ()


def current_ranges(
    commits: Iterable[tuple[str, JournaledCommit]],
    accepted: Sequence[Acceptance] = (),
    *,
    keeps_replaced: bool = False,
) -> CurrentRanges:
    """Commits come with their journal name; entries of one name are parts of one commit.

    Later ranges replace overlapping ones, as after a refill.
    """
    by_name: dict[str, JournaledCommit] = {}
    for name, commit in sorted(commits, key=lambda entry: entry[0]):
        by_name[name] = by_name[name].joined(commit) if name in by_name else commit
    state = _State(accepted, keeps_replaced=keeps_replaced)
    for name, commit in by_name.items():
        state.record(name, [StoredRange.of(range_, commit_id=commit.commit_id) for range_ in commit.ranges])
    groups = [
        (name, commit.rewrite, group)
        for name, commit in by_name.items()
        if commit.rewrite is not None
        for group in commit.rewrite.groups
    ]
    for name, rewrite, group in _in_order(groups):
        state.rewrite(name, rewrite, group)
    rewrites = [commit.rewrite for commit in by_name.values() if commit.rewrite is not None]
    first: dict[int, int] = {}
    for rewrite in rewrites:
        state.retire(rewrite)
        for partition, offset in rewrite.first_offsets.items():
            first[partition] = max(offset, first.get(partition, 0))
    ranges = state.ranges()
    return CurrentRanges(
        ranges=summed_up(ranges, first) if first else ranges,
        account=acts.summed_up(state.account.intervals, first),
        first_offsets=first,
        erased=tuple((rewrite.commit_id, entry) for rewrite in rewrites for entry in rewrite.erased),
        replaced=tuple(state.replaced),
    )


def _in_order(groups: Sequence[_Group]) -> Iterable[_Group]:
    """Each group after the one that wrote its old files. Clocks differ, so names may be out of order."""
    makers = {path: number for number, (_, _, group) in enumerate(groups) for path in group.new_paths}
    graph = {
        number: {makers[path] for path in group.known_paths if makers.get(path, number) != number}
        for number, (_, _, group) in enumerate(groups)
    }
    try:
        return [groups[number] for number in TopologicalSorter(graph).static_order()]
    except CycleError:  # the archiver never writes a file twice, so something else changed the journal
        return groups


class _State:
    def __init__(self, accepted: Sequence[Acceptance], *, keeps_replaced: bool = False) -> None:
        self._accepted = list(accepted)
        self._keeps_replaced = keeps_replaced
        self._recorded: set[str] = set()
        self.replaced: list[ReplacedFile] = []
        self.account = IntervalChains()
        self._held: dict[str, tuple[str, StoredRange]] = {}
        self._by_path: dict[str, dict[str, None]] = {}
        self._without_file: dict[str, None] = {}

    def record(self, name: str, ranges: Sequence[StoredRange]) -> None:
        for stored in ranges:
            self.add(name, stored)
        for _, intervals in groupby(sorted(map(Interval.of, ranges), key=_offsets_of), key=_partition_of):
            fresh = tuple(intervals)
            self.account.act(map(_offsets_of, fresh), partial(acts.recorded, fresh=fresh))

    def add(self, name: str, one: StoredRange) -> None:
        self._held[one.id] = (name, one)
        for path in one.paths:
            self._by_path.setdefault(path, {})[one.id] = None
        if self._keeps_replaced:
            self._recorded.update(one.paths)
        if not one.paths and one.expected:
            self._without_file[one.id] = None

    def rewrite(self, name: str, rewrite: Rewrite, group: RewriteGroup) -> None:
        ids = {range_id: None for path in group.known_paths for range_id in self._by_path.get(path, ())}
        ids |= {range_id: None for range_id in self._without_file if lies_elsewhere(self._held[range_id][1], group)}
        old = [self._less_accepted(self._remove(range_id)) for range_id in ids]
        if self._keeps_replaced:
            reason = removal_reason(rewrite, group)
            for stored in old:
                self._replace(stored, group.known_paths, rewrite.commit_id, reason)
            foreign = files_of_other_engines(rewrite, group, old, self._recorded)
            self.replaced += foreign
            self._recorded.update(group.paths)
        for made in regrouped(rewrite, group, old, is_done=True):
            self.add(name, made)
        spans = acts.spans_of(group)
        for _, records in groupby(spans, key=_partition_of):
            rewritten = tuple(records)
            act = partial(acts.rewritten, spans=rewritten, commit_id=rewrite.commit_id)
            self.account.act(map(_offsets_of, rewritten), act)

    def retire(self, rewrite: Rewrite) -> None:
        if not rewrite.first_offsets:
            return
        for name, range_ in tuple(self._held.values()):
            if is_left_below(range_, rewrite.first_offsets.get(range_.partition, 0)):
                left = self._less_accepted(self._remove(range_.id))
                self._replace(left, left.paths, rewrite.commit_id, removal_reason(rewrite))
                self.add(name, retired_below(left, rewrite.commit_id))
        below = [OffsetRange(partition, 0, first - 1) for partition, first in rewrite.first_offsets.items() if first]
        self.account.act(below, partial(acts.retired, first_offsets=rewrite.first_offsets))

    def ranges(self) -> tuple[StoredRange, ...]:
        entries = sorted(self._held.values(), key=lambda entry: (entry[0], entry[1].partition, entry[1].start_offset))
        kept, refilled_by = _latest([range_ for _, range_ in entries])
        for stored in (stored for _, stored in entries if stored.id in refilled_by):
            commit_id = refilled_by[stored.id]
            self._replace(stored, stored.paths, commit_id, f"refill: commit {commit_id}")
        return tuple(self._less_accepted(range_) for _, range_ in entries if range_.id in kept)

    def _replace(self, stored: StoredRange, paths: Iterable[str], commit_id: str | None, reason: str) -> None:
        if self._keeps_replaced:
            self.replaced += ReplacedFile.of_range(stored, paths=paths, replaced_by=commit_id, reason=reason)

    def _remove(self, range_id: str) -> StoredRange:
        _, range_ = self._held.pop(range_id)
        self._without_file.pop(range_id, None)
        for path in range_.paths:
            del self._by_path[path][range_id]
        return range_

    def _less_accepted(self, one: StoredRange) -> StoredRange:
        for acceptance in tuple(self._accepted):
            if acceptance.is_of(one):
                self._accepted.remove(acceptance)
                at = OffsetRange.half_open(one.partition, one.start_offset, one.end_offset)
                self.account.act((at,), partial(acts.accepted, at=at, removed=acceptance.erased, lost=acceptance.lost))
                one = one.without(left=acceptance.left, erased=acceptance.erased, lost=acceptance.lost)
        return one


def _offsets_of(value: HasOffsets) -> OffsetRange:
    return value.offsets


def _partition_of(value: HasOffsets) -> int:
    return value.offsets.partition


def _latest(ranges: Sequence[StoredRange]) -> tuple[set[str], dict[str, str | None]]:
    """Return ids that no later range overlaps, and the later commits of the remaining ids."""
    kept: set[str] = set()
    replaced: dict[str, str | None] = {}
    covered: dict[int, list[tuple[int, int, str | None]]] = {}
    for range_ in reversed(ranges):
        spans = covered.setdefault(range_.partition, [])
        index = bisect_left(spans, range_.offsets, key=lambda span: span[:2])
        before, after = spans[index - 1] if index else None, spans[index] if index < len(spans) else None
        if before is not None and before[1] > range_.start_offset:
            replaced[range_.id] = before[2]
        elif after is not None and after[0] < range_.end_offset:
            replaced[range_.id] = after[2]
        else:
            spans.insert(index, (*range_.offsets, range_.files[0].commit_id))
            kept.add(range_.id)
    return kept, replaced
