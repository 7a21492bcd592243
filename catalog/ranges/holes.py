"""Rows that a table must have, missing rows, and rows accepted as gone (docs/missing-records.md)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, repeat
from typing import Any, Final, Self

from catalog.offset_range import HalfOpen, OffsetRange
from catalog.ranges.spans import by_partition, joined, uncovered
from catalog.ranges.stored_ranges import StoredRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFile:
    path: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRange:
    """A committed range of which the table must have `rows`.

    The written files had `file_rows` of its records, with this `digest`, and maybe more of other ranges. `gone` ones
    are gone on purpose or accepted: `accepted_rows` at the `accepted` spans, the remaining ones at unknown offsets.
    """

    id: str
    partition: int
    start_offset: int
    end_offset: int
    files: tuple[ExpectedFile, ...]
    rows: int
    file_rows: int
    digest: str | None
    gone: int = 0
    accepted: tuple[tuple[int, int], ...] = ()
    accepted_rows: int = 0

    @property
    def unplaced(self) -> int:
        return max(0, self.gone - self.accepted_rows)

    @property
    def proven(self) -> Self:
        """Without acceptances that aren't recorded: their rows are expected still."""
        return self if self.accepted_rows <= self.gone else replace(self, accepted=(), accepted_rows=0)

    @property
    def is_intact(self) -> bool:
        return self.rows == self.file_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    range_id: str
    partition: int
    start_offset: int
    end_offset: int
    rows: int

    @property
    def span(self) -> str:
        return f"[{self.start_offset}, {self.end_offset})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredRange:
    """`rows` were changed or duplicated."""

    range_id: str
    partition: int
    start_offset: int
    end_offset: int
    rows: int

    @property
    def span(self) -> str:
        return f"[{self.start_offset}, {self.end_offset})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """`uncompared` offsets may lie beyond the archived end, `uncompared_rows` don't.

    Nothing before `unseen_before` was visible. `sequence` is 0 if unknown.
    """

    snapshot_id: int | None
    holes: tuple[Hole, ...] = ()
    altered: tuple[AlteredRange, ...] = ()
    uncompared: tuple[OffsetRange, ...] = ()
    uncompared_rows: int = 0
    unseen_before: int | None = None
    sequence: int = 0

    def without(self, ranges: Iterable[OffsetRange]) -> Self:
        gone = by_partition(ranges)
        return replace(
            self,
            altered=tuple(
                range_
                for range_ in self.altered
                if uncovered([(range_.start_offset, range_.end_offset)], gone.get(range_.partition, ()))
            ),
            uncompared=tuple(
                OffsetRange.half_open(offsets.partition, *left)
                for offsets in self.uncompared
                for left in uncovered([(offsets.first, offsets.end)], gone.get(offsets.partition, ()))
            ),
        )

    def to_json(self) -> dict[str, Any]:
        content = {"snapshot_id": self.snapshot_id, "holes": [asdict(hole) for hole in self.holes]}
        more: dict[str, Any] = {
            "altered": [asdict(range_) for range_ in self.altered],
            "uncompared": [[offsets.partition, offsets.first, offsets.end] for offsets in self.uncompared],
            "uncompared_rows": self.uncompared_rows,
            "unseen_before": self.unseen_before,
            "sequence": self.sequence,
        }
        return content | {name: value for name, value in more.items() if value}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            snapshot_id=value["snapshot_id"],
            holes=tuple(Hole(**item) for item in value["holes"]),
            altered=tuple(AlteredRange(**item) for item in value.get("altered", ())),
            uncompared=tuple(
                OffsetRange.half_open(partition, start, end)
                for partition, start, end in value.get("uncompared", ())
                if start < end
            ),
            uncompared_rows=value.get("uncompared_rows", 0),
            unseen_before=value.get("unseen_before"),
            sequence=value.get("sequence", 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Rows of a range that stay gone: `erased` by other engines on purpose, or `lost`.

    Matched by partition, start and `paths`; old ones by `range_id`, which can change. The table had no row at
    `offsets` (half-open); None if unknown.
    """

    range_id: str
    left: int
    erased: int = 0
    lost: int = 0
    paths: tuple[str, ...] = ()
    partition: int | None = None
    start_offset: int | None = None
    offsets: tuple[tuple[int, int], ...] | None = None

    def is_of(self, one: StoredRange) -> bool:
        position = (self.partition, self.start_offset, frozenset(self.paths))
        is_same = position == (one.partition, one.start_offset, frozenset(one.paths))
        return (
            is_same or (not self.paths and self.range_id == one.id)
        ) and one.expected == self.left + self.erased + self.lost

    @property
    def place(self) -> AcceptedOffsets | None:
        if self.partition is None or not self.offsets:
            return None
        return AcceptedOffsets(partition=self.partition, spans=self.offsets, removed=self.erased, lost=self.lost)

    def to_json(self) -> dict[str, Any]:
        """Without the offsets: older archivers refuse unknown keys here."""
        value = asdict(self) | {"paths": list(self.paths)}
        del value["offsets"]
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**{**value, "paths": tuple(value.get("paths", ()))})


def acceptances_to_json(accepted: Sequence[Acceptance]) -> dict[str, Any]:
    """The offsets stand beside the acceptances, so that older archivers pass over them."""
    value: dict[str, Any] = {"accepted": [acceptance.to_json() for acceptance in accepted]}
    offsets = [acceptance.offsets and [list(span) for span in acceptance.offsets] for acceptance in accepted]
    return value | ({"offsets": offsets} if any(offsets) else {})


def acceptances_from_json(value: Mapping[str, Any]) -> tuple[Acceptance, ...]:
    return tuple(
        replace(Acceptance.from_json(accepted), offsets=spans and tuple((start, end) for start, end in spans))
        for accepted, spans in zip(value["accepted"], chain(value.get("offsets", ()), repeat(None)), strict=False)
    )


MOST_SPANS: Final = 4_096
"""The most spans of an acceptance. If rows that are left make more, its offsets stay unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedOffsets:
    """Spans ascend."""

    partition: int
    spans: tuple[tuple[int, int], ...]
    removed: int = 0
    lost: int = 0

    @property
    def rows(self) -> int:
        return self.removed + self.lost

    @property
    def hull(self) -> OffsetRange:
        return OffsetRange.half_open(self.partition, self.spans[0][0], self.spans[-1][1])


class AcceptedSpans:
    """A topic's accepted offsets. Ranges with accepted rows are never cut."""

    def __init__(self, accepted: Iterable[AcceptedOffsets]) -> None:
        self._by_partition: dict[int, list[AcceptedOffsets]] = {}
        for acceptance in sorted(set(accepted), key=lambda acceptance: acceptance.hull):
            self._by_partition.setdefault(acceptance.partition, []).append(acceptance)

    def inside(self, range_: HalfOpen) -> tuple[tuple[tuple[int, int], ...], int]:
        accepted = self._by_partition.get(range_.partition, [])
        first = bisect_left(accepted, range_.start_offset, key=_first_of)
        last = bisect_left(accepted, range_.end_offset, key=_first_of)
        inside = [acceptance for acceptance in accepted[first:last] if acceptance.hull.end <= range_.end_offset]
        spans = tuple(joined(span for acceptance in inside for span in acceptance.spans))
        return spans, sum(acceptance.rows for acceptance in inside)

    def of(self, range_: ExpectedRange, *, most: int | None = None) -> ExpectedRange:
        """Unless they have more rows than were accepted: `most` by the account, or all gone ones if unknown."""
        spans, rows = self.inside(range_)
        if not spans or rows > range_.gone or (most is not None and rows > most):
            return range_
        return replace(range_, accepted=spans, accepted_rows=rows)


def _first_of(accepted: AcceptedOffsets) -> int:
    return accepted.hull.first


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneRows:
    erased: int = 0
    lost: int = 0
    retired: int = 0
