"""Which structs get columns: breadth-first by depth, then in the order of fields, within a table's budget of leaves.

A struct whose type is already on the path from the root is never expanded, nor one too deep; the others are while
their own leaves fit. What an earlier version decided stays decided. Limits: docs/type-mapping.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from schema_mapping.columns.graph import ColumnGraph, held_structs, leaves, levels
from schema_mapping.columns.ledger import Root
from schema_mapping.columns.options import HARD_COLUMNS, HARD_DEPTH, MappingOptions
from schema_mapping.columns.paths import Path
from schema_mapping.errors import DescriptorError

Place: TypeAlias = tuple[Root, Path]

# Arrow's C interface reads schemas of 64 levels, the batch itself among them; a map below a struct adds up to 4.
MAX_LEVEL: Final = 60
MAP_LEVELS: Final = 4
ROOT_LEAVES: Final = 5


class CutReason(StrEnum):
    """Why a struct is kept whole in its `__unrecognized__`."""

    RECURSION = "its type is already on the path from the root"
    DEPTH = "it lies too deep"
    COLUMNS = "its columns did not fit"


@dataclass(frozen=True, slots=True)
class Spot:
    """A struct on the way down: where it is, its name, the names of those above it, and how deep it lies."""

    place: Place
    struct: str
    above: tuple[str, ...]
    level: int

    @property
    def depth(self) -> int:
        """Structs from the root, which is 1."""
        return len(self.above) + 1


def plan(
    roots: Mapping[Root, ColumnGraph], options: MappingOptions, *, decided: Mapping[Place, bool], used: int = 0
) -> frozenset[Place]:
    """Places of the structs to expand.

    `decided` tells for places that the ledger knows whether they are expanded; `used` counts the table's leaves
    elsewhere. Raises DescriptorError when the fields that must have a column are more than 10,000.
    """
    needed = used + sum(ROOT_LEAVES + _inner_leaves(graph, graph.root) for graph in roots.values())
    standing = dict(
        _expand(roots, HARD_DEPTH, lambda spot, _: _is_member(roots, spot) or decided.get(spot.place, False))
    )
    needed += sum(standing.values())
    if needed > HARD_COLUMNS:
        raise DescriptorError(
            f"the message needs {needed} columns before any new sub-message is expanded; a table takes {HARD_COLUMNS}",
            messages=tuple(graph.root for graph in roots.values()),
        )
    left = options.max_columns - needed

    def fits(spot: Spot, added: int) -> bool:
        nonlocal left
        if spot.place in standing:
            return True
        if (spot.place in decided and not options.expand_cuts) or added > left or spot.depth > options.max_depth:
            return False
        left -= added
        return True

    return frozenset(place for place, _ in _expand(roots, HARD_DEPTH, fits))


def _expand(
    roots: Mapping[Root, ColumnGraph], max_depth: int, accept: Callable[[Spot, int], bool]
) -> Iterator[tuple[Place, int]]:
    """Walks breadth-first into what `accept` takes; yields each place taken with the leaves it adds."""
    level = [Spot((root, ()), graph.root, (), 1) for root, graph in roots.items()]
    while level:
        below: list[Spot] = []
        for parent in level:
            graph = roots[parent.place[0]]
            for spot in sub_structs(graph, parent):
                if why_never(graph, spot, max_depth) is not None:
                    continue
                added = _inner_leaves(graph, spot.struct)
                if accept(spot, added):
                    yield spot.place, added
                    below.append(spot)
        level = below


def why_never(graph: ColumnGraph, spot: Spot, max_depth: int) -> CutReason | None:
    """Why the struct can't be expanded whatever the budget, if so."""
    if spot.struct in spot.above:
        return CutReason.RECURSION
    if spot.depth > max_depth or not _fits_arrow(graph, spot):
        return CutReason.DEPTH
    return None


def _is_member(roots: Mapping[Root, ColumnGraph], spot: Spot) -> bool:
    """Whether it is one of the several types that a value may be, which always have columns."""
    graph = roots[spot.place[0]]
    return graph.one_of and spot.above == (graph.root,)


def sub_structs(graph: ColumnGraph, parent: Spot) -> Iterator[Spot]:
    """The structs directly below one, in the order of its fields."""
    root, path = parent.place
    above = (*parent.above, parent.struct)
    for field in graph.structs[parent.struct]:
        for struct, steps, down in held_structs(field.held):
            yield Spot((root, (*path, field.step, *steps)), struct.name, above, parent.level + down)


def _inner_leaves(graph: ColumnGraph, struct: str) -> int:
    """Leaves that the fields of a struct add when it is expanded; its `__unrecognized__` is there either way."""
    return sum(leaves(field.held) for field in graph.structs[struct])


def _fits_arrow(graph: ColumnGraph, spot: Spot) -> bool:
    deepest = max((levels(field.held) for field in graph.structs[spot.struct]), default=0)
    return spot.level + max(deepest, MAP_LEVELS) <= MAX_LEVEL
