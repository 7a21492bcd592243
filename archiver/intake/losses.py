"""Decide which rows of an abandoned log are saved or lost. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from archiver.intake.salvage import Salvage
from catalog.offset_range import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLosses:
    """The table ends at `end`, and new rows begin at `next_offset`.

    `lost` rows were acknowledged, and are in neither table nor folder. `doubtful` may have been acknowledged
    after the last report; they are not given again.
    """

    partition: int
    end: int
    next_offset: int
    saved: tuple[OffsetRange, ...] = ()
    lost: tuple[OffsetRange, ...] = ()
    doubtful: OffsetRange | None = None

    @property
    def acknowledged(self) -> int:
        """The offset after certainly acknowledged rows."""
        return self.next_offset if self.doubtful is None else self.doubtful.first

    @property
    def steps(self) -> tuple[tuple[OffsetRange | None, OffsetRange | None], ...]:
        """Losses, each with the saved rows after it. Either may be None."""
        gone = [*self.lost, *([self.doubtful] if self.doubtful else [])]
        merged: list[OffsetRange] = []
        for gap in gone:
            if merged and merged[-1].end == gap.first:
                gap = OffsetRange(self.partition, merged.pop().first, gap.last)  # noqa: PLW2901
            merged.append(gap)
        before = {gap.end: gap for gap in merged}
        steps = [(before.pop(run.first, None), run) for run in self.saved]
        return (*steps, *((gap, None) for gap in before.values()))


def losses(
    salvage: Salvage,
    ends: Mapping[int, int],
    acknowledged: Iterable[Mapping[int, int]],
    *,
    partitions: int,
    skip: int,
    least: Mapping[int, int],
) -> tuple[PartitionLosses, ...]:
    """`acknowledged` are next offsets that clients, the registry or the log know.

    New rows begin after `skip` more, and not before `least`.
    """
    sources = (ends, salvage.state.next_offsets, *acknowledged)
    numbers = sorted({*range(partitions), *(number for source in sources for number in source)})
    return tuple(
        _of_partition(
            number,
            salvage.parts.get(number, ()),
            end=ends.get(number, 0),
            acknowledged=max(source.get(number, 0) for source in sources),
            skip=skip,
            least=least.get(number, 0),
        )
        for number in numbers
    )


def _of_partition(
    partition: int, parts: Sequence[OffsetRange], *, end: int, acknowledged: int, skip: int, least: int
) -> PartitionLosses:
    saved: list[OffsetRange] = []
    lost: list[OffsetRange] = []
    reached = end
    for part in parts:
        if part.end <= reached:
            continue
        if part.first > reached:
            lost.append(OffsetRange(partition, reached, part.first - 1))
        if saved and saved[-1].end == part.first:
            part = OffsetRange(partition, saved.pop().first, part.last)  # noqa: PLW2901 - joined
        saved.append(part)
        reached = part.end
    if reached < acknowledged:
        lost.append(OffsetRange(partition, reached, acknowledged - 1))
        reached = acknowledged
    next_offset = max(reached + skip, least)
    return PartitionLosses(
        partition=partition,
        end=end,
        next_offset=next_offset,
        saved=tuple(saved),
        lost=tuple(lost),
        doubtful=OffsetRange(partition, reached, next_offset - 1) if next_offset > reached else None,
    )
