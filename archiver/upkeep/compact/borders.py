"""The offset ranges that a group's new files cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from archiver.upkeep.compact.choice import FileGroup, SourceRange

FIRST: Final = 0
END: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSpan:
    """Half-open. With `is_whole` the new file has all records of the span."""

    start: int
    end: int
    is_whole: bool = True


class Borders:
    """Adjacent whole ranges are joined; refill needs the borders of ranges with deleted rows."""

    def __init__(self, ranges: Iterable[KeptSpan]) -> None:
        self._spans = _joined(sorted(ranges, key=lambda span: (span.start, span.end)))

    @classmethod
    def of_group(cls, group: FileGroup, partition: int) -> Borders:
        spans: dict[tuple[int, int], bool] = {}
        for source in group.files:
            for range_ in source.ranges:
                if range_.partition == partition:
                    span = (range_.start_offset, range_.end_offset)
                    spans[span] = spans.get(span, True) and _is_whole(range_, has_deletes=source.has_deletes)
        return cls(KeptSpan(start=start, end=end, is_whole=whole) for (start, end), whole in spans.items())

    def __bool__(self) -> bool:
        return bool(self._spans)

    def cut(self, offset: int) -> int:
        """A file may not begin inside a range that isn't whole."""
        inside = next((span for span in self._spans if span.start < offset < span.end and not span.is_whole), None)
        return offset if inside is None else inside.end

    def within(self, start: int, end: int) -> tuple[KeptSpan, ...]:
        return tuple(
            KeptSpan(start=max(start, span.start), end=min(end, span.end), is_whole=span.is_whole)
            for span in self._spans
            if span.start < end and start < span.end
        )


def is_one_range(spans: Sequence[KeptSpan]) -> bool:
    return len(spans) == 1 and spans[0].is_whole


def _is_whole(one: SourceRange, *, has_deletes: bool) -> bool:
    return one.is_whole and not has_deletes


def _joined(spans: Sequence[KeptSpan]) -> tuple[KeptSpan, ...]:
    merged: list[KeptSpan] = []
    for span in spans:
        last = merged[-1] if merged else None
        if last is not None and last.is_whole and span.is_whole and last.end == span.start:
            merged[-1] = KeptSpan(start=last.start, end=span.end)
        else:
            merged.append(span)
    return tuple(merged)
