"""Compare the account with the ranges in `files`, which are kept independently."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from catalog.account.interval import Interval, merged
from catalog.offset_range import OffsetRange, clusters, covers_exactly, hull
from catalog.ranges.stored_ranges import StoredRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`text` has both statements, the account's first."""

    offsets: OffsetRange
    text: str


def compare(account: Iterable[Interval], files: Iterable[StoredRange]) -> tuple[Difference, ...]:
    """Compare regardless of borders. In `files`, rows removed by other engines are erased."""
    return differences(account, map(Interval.of, files))


def differences(account: Iterable[Interval], other: Iterable[Interval]) -> tuple[Difference, ...]:
    compared = (_difference(ours, theirs) for ours, theirs in clusters(account, other))
    return tuple(interval for interval in compared if interval is not None)


def completed(account: Iterable[Interval], files: Iterable[StoredRange]) -> tuple[Interval, ...]:
    """A rebuilt registry's account: the journal's if it agrees with `files`, otherwise of `files`."""
    made: list[Interval] = []
    for intervals, ranges in clusters(account, tuple(Interval.of(interval) for interval in files)):
        if not ranges or (intervals and _difference(intervals, ranges) is None):
            digests = {interval.offsets: interval.digest for interval in ranges}
            made += [
                interval if interval.digest else replace(interval, digest=digests.get(interval.offsets))
                for interval in intervals
            ]
        else:
            made += ranges
    return tuple(made)


def _difference(intervals: Sequence[Interval], ranges: Sequence[Interval]) -> Difference | None:
    offsets = hull(interval.offsets for interval in (*intervals, *ranges))
    if not covers_exactly((interval.offsets for interval in intervals), (interval.offsets for interval in ranges)):
        text = f"offsets {_spans(intervals)} and {_spans(ranges)}"
        return Difference(offsets=offsets, text=text)
    ours, theirs = merged(intervals), merged(ranges)
    pairs: dict[str, tuple[object, object]] = {
        "expected rows": (ours.expected, theirs.expected),
        "erased rows": (ours.erased + ours.removed, theirs.erased + theirs.removed),
        "lost rows": (ours.lost, theirs.lost),
        "retired rows": (ours.retired, theirs.retired),
        "offsets that the log had lost": (_gap(intervals), _gap(ranges)),
    }
    if ours.digest is not None and theirs.digest is not None:
        pairs["digest"] = (ours.digest, theirs.digest)
    differing = [f"{name} {first} and {second}" for name, (first, second) in pairs.items() if first != second]
    return Difference(offsets=offsets, text="; ".join(differing)) if differing else None


def _gap(intervals: Sequence[Interval]) -> int:
    return sum(len(interval.offsets) for interval in intervals if interval.is_gap)


def _spans(intervals: Sequence[Interval]) -> str:
    return ", ".join(str(interval.offsets) for interval in intervals) or "none"
