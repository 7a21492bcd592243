"""The ranges and files that a retention removes, and the resulting first offsets.

Everything below goes, everything above stays, after each commit too: unremovable files and legal holds keep all later
records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from archiver.archive.table_files import TableFile
from archiver.upkeep.removal.components import Component, components
from archiver.upkeep.removal.row_bounds import lacks_bounds
from catalog.ranges.legal_holds import Hold, first_held
from catalog.ranges.rewrite import RecordSpan, RewriteGroup
from catalog.registry.removable import RemovableRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """Whole components, and `edges` with rows on both sides, which counts leave out.

    `held`: hold ids by partition that they limit. `kept`: paths of limiting files without known records.
    """

    first_offsets: Mapping[int, int]
    going: tuple[Component, ...] = ()
    edges: tuple[Component, ...] = ()
    held: Mapping[int, str] = field(default_factory=dict)
    kept: Mapping[int, str] = field(default_factory=dict)

    @property
    def files(self) -> int:
        return sum(len(component.files) for component in self.going)

    @property
    def rows(self) -> int:
        return sum(component.rows for component in self.going)

    @property
    def size_bytes(self) -> int:
        return sum(component.size_bytes for component in self.going)


def retirement(
    cuts: Mapping[int, int],
    *,
    ranges: Sequence[RemovableRange],
    files: Sequence[TableFile],
    holds: Iterable[Hold],
    known: Mapping[int, int],
    rows: bool = False,
) -> Retirement:
    """`ranges` may have records in files that begin below the cuts.

    With `rows`, partitions begin exactly at the cuts, and mixed files are rewritten.
    """
    selected = {partition: offset for partition, offset in cuts.items() if offset > known.get(partition, 0)}
    blocked = _held_back(selected, tuple(holds), known)
    grouped = components(ranges, files)
    first_offsets = dict(selected)
    kept: dict[int, str] = {}
    for file in filter(partial(_begins_below, wanted=selected), grouped.strangers):
        kept |= dict.fromkeys(_begin_with(file, first_offsets), file.path)
    going, staying = list(grouped.all), list[Component]()
    while True:
        sides = [(is_below(item, first_offsets), item) for item in going]
        stuck = [item for goes, item in sides if not goes]
        if not stuck:
            break
        going = [item for goes, item in sides if goes]
        staying += stuck
        for item in stuck:
            if not rows or _is_unbounded(item):
                _keep_whole(first_offsets, kept, item)
    first_offsets = {item: offset for item, offset in first_offsets.items() if offset > known.get(item, 0)}
    edges = tuple(item for item in staying if _has_rows_below(item, first_offsets)) if rows else ()
    return Retirement(
        first_offsets=first_offsets if going or edges else {},
        going=tuple(going),
        edges=edges,
        held=blocked,
        kept=kept,
    )


def _held_back(wanted: dict[int, int], holds: Sequence[Hold], known: Mapping[int, int]) -> dict[int, str]:
    blocked: dict[int, str] = {}
    for partition, offset in tuple(wanted.items()):
        above = known.get(partition, 0)
        first = first_held(holds, partition, above=above)
        if first is not None and first < offset:
            wanted[partition] = first
            blocked[partition] = next(hold.id for hold in holds if first_held((hold,), partition, above=above) == first)
    return blocked


def _keep_whole(first_offsets: dict[int, int], kept: dict[int, str], each: Component) -> None:
    for file in each.files if each.has_foreign else ():
        partitions = _begin_with(file, first_offsets)
        if lacks_bounds(file):  # other files are kept until all of their records may go
            kept |= dict.fromkeys(partitions, file.path)
    for range_ in each.ranges:
        if range_.start_offset < first_offsets.get(range_.partition, 0):
            first_offsets[range_.partition] = range_.start_offset


def _has_rows_below(each: Component, first_offsets: Mapping[int, int]) -> bool:
    return any(range_.start_offset < first_offsets.get(range_.partition, 0) for range_ in each.ranges)


def groups_of(going: Iterable[Component], why: str) -> tuple[RewriteGroup, ...]:
    """A component without files needs no rewrite: offsets below first offsets count as retired."""
    return tuple(
        RewriteGroup(
            paths=tuple(file.path for file in component.files),
            emptied=tuple(
                RecordSpan(
                    partition=range_.partition,
                    start_offset=range_.start_offset,
                    end_offset=range_.end_offset,
                    retired=range_.expected,
                    removed=max(0, range_.rows - range_.expected),
                )
                for range_ in component.ranges
            ),
            why=why,
            recorded=component.recorded if component.has_foreign else (),
        )
        for component in going
        if component.files
    )


def _begins_below(file: TableFile, wanted: Mapping[int, int]) -> bool:
    low = file.offsets.low if file.offsets else 0
    at = file.partitions
    return any(low < offset for partition, offset in wanted.items() if at is None or at.low <= partition <= at.high)


def is_below(each: Component, first_offsets: Mapping[int, int]) -> bool:
    return all(range_.end_offset <= first_offsets.get(range_.partition, 0) for range_ in each.ranges) and not (
        each.has_foreign and any(_reaches_above(file, first_offsets) for file in each.files)
    )


def _reaches_above(file: TableFile, first_offsets: Mapping[int, int]) -> bool:
    if file.offsets is None or file.partitions is None:
        return True
    partitions = range(file.partitions.low, file.partitions.high + 1)
    return any(file.offsets.high >= first_offsets.get(partition, 0) for partition in partitions)


def _is_unbounded(each: Component) -> bool:
    return any(map(lacks_bounds, each.files))


def _begin_with(file: TableFile, first_offsets: dict[int, int]) -> list[int]:
    low, at = (file.offsets.low if file.offsets else 0), file.partitions
    partitions = [
        partition
        for partition, offset in first_offsets.items()
        if low < offset and (at is None or at.low <= partition <= at.high)
    ]
    for partition in partitions:
        first_offsets[partition] = low
    return partitions


BATCH: Final = 500
"""How many components one commit takes out, unless others had to wait for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The last batch adds the rewritten files."""

    going: tuple[Component, ...]
    first_offsets: Mapping[int, int]
    with_edges: bool


def in_batches(
    going: Iterable[Component],
    edges: Sequence[Component],
    *,
    first_offsets: Mapping[int, int],
    known: Mapping[int, int],
    size: int = BATCH,
) -> Iterator[Batch]:
    """Yield commits, oldest first. A component with a range above a later one waits for it.

    `edges` are rewritten; `known` are current first offsets.
    """
    ordered = sorted(going, key=_place)
    waiting: list[Component] = []
    for start in range(0, len(ordered), size) if ordered else range(1 if edges else 0):
        batch, later = [*waiting, *ordered[start : start + size]], ordered[start + size :]
        waiting = []
        reached = reached_before(first_offsets, (*later, *edges) if later else ())
        while True:
            highest = {item: max(reached.get(item, 0), known.get(item, 0)) for item in {*reached, *known}}
            sides = [(is_below(item, highest), item) for item in batch]
            above = [item for goes, item in sides if not goes]
            if not above:
                break
            batch = [item for goes, item in sides if goes]
            waiting += above
            reached = reached_before(reached, above)
        yield Batch(going=tuple(batch), first_offsets=reached, with_edges=not later)


def without_failed(planned: Retirement, failed: Sequence[Component], known: Mapping[int, int]) -> Retirement:
    """Leave out failed edges and everything above them.

    Edges rewritten for higher first offsets stay too.
    """
    staying, going = list(failed), list(planned.going)
    edges = [edge for edge in planned.edges if not any(edge is component for component in failed)]
    while True:
        reached = reached_before(planned.first_offsets, staying)
        highest = {item: max(reached.get(item, 0), known.get(item, 0)) for item in {*reached, *known}}
        stuck = [item for item in going if not is_below(item, highest)]
        stuck += [edge for edge in edges if _reaches_over(edge, highest, planned.first_offsets)]
        if not stuck:
            return replace(planned, first_offsets=reached, going=tuple(going), edges=tuple(edges))
        staying += stuck
        going = [item for item in going if not any(item is component for component in stuck)]
        edges = [edge for edge in edges if not any(edge is component for component in stuck)]


def _reaches_over(each: Component, reached: Mapping[int, int], planned: Mapping[int, int]) -> bool:
    return any(
        range_.start_offset < planned.get(range_.partition, 0) and range_.end_offset > reached.get(range_.partition, 0)
        for range_ in each.ranges
        if reached.get(range_.partition, 0) < planned.get(range_.partition, 0)
    )


def reached_before(first_offsets: Mapping[int, int], later: Iterable[Component]) -> dict[int, int]:
    reached = dict(first_offsets)
    for component in later:
        for range_ in component.ranges:
            if range_.start_offset < reached.get(range_.partition, 0):
                reached[range_.partition] = range_.start_offset
    return reached


def _place(each: Component) -> tuple[int, int]:
    return min((range_.start_offset, range_.partition) for range_ in each.ranges)
