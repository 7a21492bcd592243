"""Spans of offsets in an erasure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from catalog.offset_range import OffsetRange
from catalog.ranges.spans import Cover, joined, uncovered

Span: TypeAlias = tuple[int, int, int]
"""A partition, the first offset, and the one after the last."""
ByPartition: TypeAlias = Mapping[int, Sequence[tuple[int, int]]]


def are_known(spans: Iterable[Span], erased: ByPartition) -> bool:
    return not any(uncovered([(start, end)], erased.get(partition, ())) for partition, start, end in spans)


def counted(spans: Iterable[Span]) -> dict[int, int]:
    return {partition: sum(end - start for start, end in ranges) for partition, ranges in joined_spans(spans).items()}


def in_order(spans: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(
        (partition, start, end) for partition, ranges in sorted(joined_spans(spans).items()) for start, end in ranges
    )


def left_of(spans: Iterable[Span], gone: Iterable[Span], erased: ByPartition) -> tuple[Span, ...]:
    taken = (*gone, *((number, start, end) for number, ranges in erased.items() for start, end in ranges))
    by_partition, cover = joined_spans(taken), Cover(OffsetRange.half_open(*span) for span in taken)
    return tuple(
        (partition, *part)
        for partition, ranges in sorted(joined_spans(spans).items())
        for start, end in ranges
        for part in (
            uncovered([(start, end)], by_partition[partition])
            if cover.touches(OffsetRange.half_open(partition, start, end))
            else [(start, end)]
        )
    )


def joined_spans(spans: Iterable[Span]) -> dict[int, list[tuple[int, int]]]:
    by_partition: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for partition, start, end in spans:
        by_partition[partition].append((start, end))
    return {partition: joined(ranges) for partition, ranges in by_partition.items()}
