"""Retire and sum up ranges below first offsets. Pure, shared by registry and journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby

from catalog.ranges.stored_ranges import StoredFile, StoredRange


def is_left_below(one: StoredRange, first_offset: int) -> bool:
    return one.end_offset <= first_offset and bool(one.paths or one.expected)


def retired_below(one: StoredRange, commit_id: str) -> StoredRange:
    """Expected rows become retired."""
    stored = StoredFile(
        id=f"{commit_id}-{one.partition}-{one.start_offset}",
        file=None,
        rows=0,
        digest=None,
        expected=0,
        schema_version=one.files[0].schema_version,
        commit_id=commit_id,
        erased=sum(file.erased for file in one.files),
        lost=sum(file.lost for file in one.files),
        retired=sum(file.retired + file.expected for file in one.files),
    )
    return replace(one, files=(stored,))


def summed_up(ranges: Iterable[StoredRange], first_offsets: Mapping[int, int]) -> tuple[StoredRange, ...]:
    """Lost offsets stay apart: they are counted by range."""
    result: list[StoredRange] = []
    ordered = sorted(ranges, key=lambda range_: (range_.partition, range_.start_offset))
    for partition, group in groupby(ordered, key=lambda range_: range_.partition):
        first = first_offsets.get(partition, 0)
        last: StoredRange | None = None
        for range_ in group:
            is_empty = not range_.lost and not range_.paths and not range_.expected and range_.end_offset <= first
            if is_empty and last is not None and last.end_offset == range_.start_offset:
                last = _joined(last, range_)
                result[-1] = last
                continue
            result.append(range_)
            last = range_ if is_empty else None
    return tuple(result)


def _joined(one: StoredRange, after: StoredRange) -> StoredRange:
    first = one.files[0]
    both = (*one.files, *after.files)
    stored = replace(
        first,
        erased=sum(file.erased for file in both),
        lost=sum(file.lost for file in both),
        retired=sum(file.retired for file in both),
    )
    return replace(
        one, end_offset=after.end_offset, leader_epoch=max(one.leader_epoch, after.leader_epoch), files=(stored,)
    )
