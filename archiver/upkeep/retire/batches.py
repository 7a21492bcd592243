"""In which order components leave the table, and where partitions begin after each commit.

A job may end after any commit. So each takes out only what lies below the first offsets that it sets: a reader never
meets a gap above them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from archiver.upkeep.removal.components import Component
from archiver.upkeep.retire.plan import Retirement, is_below

BATCH: Final = 500
"""How many components one commit takes out, unless others had to wait for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one commit takes out, and the first offsets that it sets. The last one puts the new files in, too."""

    going: tuple[Component, ...]
    first_offsets: Mapping[int, int]
    with_edges: bool


def in_batches(
    going: Iterable[Component],
    edges: Sequence[Component],
    *,
    first_offsets: Mapping[int, int],
    known: Mapping[int, int],
) -> Iterator[Batch]:
    """The commits that take these components out, the oldest first, until partitions begin at `first_offsets`.

    `edges` are those that are written anew, `known` the first offsets so far. What has a range above one that goes
    later, in any of its partitions, waits for it. What reaches above the last first offsets stays.
    """
    ordered = sorted(going, key=_place)
    waiting: list[Component] = []
    for start in range(0, len(ordered), BATCH) if ordered else range(1 if edges else 0):
        batch, later = [*waiting, *ordered[start : start + BATCH]], ordered[start + BATCH :]
        waiting = []
        reached = reached_before(first_offsets, (*later, *edges) if later else ())
        while True:
            highest = {each: max(reached.get(each, 0), known.get(each, 0)) for each in {*reached, *known}}
            sides = [(is_below(each, highest), each) for each in batch]
            above = [each for goes, each in sides if not goes]
            if not above:
                break
            batch = [each for goes, each in sides if goes]
            waiting += above
            reached = reached_before(reached, above)
        yield Batch(going=tuple(batch), first_offsets=reached, with_edges=not later)


def without_failed(planned: Retirement, failed: Sequence[Component], known: Mapping[int, int]) -> Retirement:
    """What still goes where some edges could not be written anew: these stay, and with them what lies above them.

    Other edges were written for the first offsets that were planned. They stay, too, where theirs become lower.
    """
    staying, going = list(failed), list(planned.going)
    edges = [each for each in planned.edges if not any(each is one for one in failed)]
    while True:
        reached = reached_before(planned.first_offsets, staying)
        highest = {each: max(reached.get(each, 0), known.get(each, 0)) for each in {*reached, *known}}
        stuck = [each for each in going if not is_below(each, highest)]
        stuck += [each for each in edges if _reaches_over(each, highest, planned.first_offsets)]
        if not stuck:
            return replace(planned, first_offsets=reached, going=tuple(going), edges=tuple(edges))
        staying += stuck
        going = [each for each in going if not any(each is one for one in stuck)]
        edges = [each for each in edges if not any(each is one for one in stuck)]


def _reaches_over(each: Component, reached: Mapping[int, int], planned: Mapping[int, int]) -> bool:
    """Whether rows between the first offsets that are reached and those that were planned are of the component."""
    return any(
        one.start_offset < planned.get(one.partition, 0) and one.end_offset > reached.get(one.partition, 0)
        for one in each.ranges
        if reached.get(one.partition, 0) < planned.get(one.partition, 0)
    )


def reached_before(first_offsets: Mapping[int, int], later: Iterable[Component]) -> dict[int, int]:
    """The first offsets as long as these components are in the table."""
    found = dict(first_offsets)
    for each in later:
        for one in each.ranges:
            if one.start_offset < found.get(one.partition, 0):
                found[one.partition] = one.start_offset
    return found


def _place(each: Component) -> tuple[int, int]:
    return min((one.start_offset, one.partition) for one in each.ranges)
