"""Offsets of one partition, from first to last inclusive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar


class HalfOpen(Protocol):
    """A value about the offsets [start_offset, end_offset) of a partition."""

    @property
    def partition(self) -> int: ...

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """At least one offset, both ends inclusive."""

    partition: int
    first: int
    last: int

    def __post_init__(self) -> None:
        if self.first > self.last:  # other engines may write rows with offsets below 0
            raise ValueError(f"partition {self.partition} has no offsets from {self.first} to {self.last}")

    @classmethod
    def half_open(cls, partition: int, start: int, end: int) -> Self:
        return cls(partition, start, end - 1)

    @classmethod
    def of_range(cls, each: HalfOpen) -> Self:
        return cls(each.partition, each.start_offset, each.end_offset - 1)

    @property
    def end(self) -> int:
        return self.last + 1

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __contains__(self, other: OffsetRange) -> bool:
        return self.partition == other.partition and self.first <= other.first and other.last <= self.last

    def overlaps(self, other: OffsetRange) -> bool:
        return self.partition == other.partition and self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        return f"[{self.first}, {self.last + 1})"


class HasOffsets(Protocol):
    @property
    def offsets(self) -> OffsetRange: ...


First = TypeVar("First", bound=HasOffsets)
Second = TypeVar("Second", bound=HasOffsets)


def hull(ranges: Iterable[OffsetRange]) -> OffsetRange:
    """At least one range, all of one partition."""
    every = tuple(ranges)
    return OffsetRange(
        every[0].partition, min(offsets.first for offsets in every), max(offsets.last for offsets in every)
    )


def covers_exactly(outer: Iterable[OffsetRange], inner: Iterable[OffsetRange]) -> bool:
    """Whether both have the same offsets, each at most once."""
    return _joined(outer) == _joined(inner)


def clusters(first: Iterable[First], second: Iterable[Second]) -> Iterator[tuple[list[First], list[Second]]]:
    """Groups of members that overlap directly or indirectly, sorted. Adjacent ranges don't overlap."""
    left = sorted(first, key=_offsets_of)
    right = sorted(second, key=_offsets_of)
    both: tuple[Sequence[HasOffsets], Sequence[HasOffsets]] = (left, right)
    at = [0, 0]
    while at[0] < len(left) or at[1] < len(right):
        begin = (at[0], at[1])
        nearest = [values[index].offsets for values, index in zip(both, at, strict=True) if index < len(values)]
        reach = min(nearest)
        last = reach.first - 1
        while last < reach.last:
            last = reach.last
            for side, values in enumerate(both):
                while at[side] < len(values) and reach.overlaps(values[at[side]].offsets):
                    reach = hull((reach, values[at[side]].offsets))
                    at[side] += 1
        yield left[begin[0] : at[0]], right[begin[1] : at[1]]


def _offsets_of(offsets: HasOffsets) -> OffsetRange:
    return offsets.offsets


def _joined(ranges: Iterable[OffsetRange]) -> Sequence[OffsetRange] | None:
    joined: list[OffsetRange] = []
    for offsets in sorted(ranges):
        before = joined[-1] if joined else None
        if before is not None and before.overlaps(offsets):
            return None
        if before is not None and before.partition == offsets.partition and before.last + 1 == offsets.first:
            joined[-1] = hull((before, offsets))
        else:
            joined.append(offsets)
    return joined
