"""Which messages get columns: breadth-first by depth, then by field number, within a table's budget of leaves.

A message whose type is already on the path from the root is never expanded, nor one too deep; the others are while
their own leaves fit. What an earlier version decided stays decided. Limits: docs/type-mapping.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from schema_mapping import names
from schema_mapping.errors import DescriptorError
from schema_mapping.ledger import Path, Root
from schema_mapping.options import HARD_COLUMNS, HARD_DEPTH, MappingOptions
from schema_mapping.type_graph import UNION_ROOT, FieldType, TypeGraph
from schema_mapping.types import Cardinality

Place: TypeAlias = tuple[Root, Path]

# Arrow's C interface reads schemas of 64 levels, the batch itself among them; a map below a struct adds up to 4.
MAX_LEVEL: Final = 60
MAP_LEVELS: Final = 4
ROOT_LEAVES: Final = 5


class CutReason(StrEnum):
    """Why a message is kept whole in its `__unrecognized__`."""

    RECURSION = "its type is already on the path from the root"
    DEPTH = "it lies too deep"
    COLUMNS = "its columns did not fit"


@dataclass(frozen=True, slots=True)
class Spot:
    """A message on the way down: where its struct is, its type, the types above it, and how deep it lies."""

    place: Place
    message: str
    above: tuple[str, ...]
    level: int

    @property
    def depth(self) -> int:
        """Messages from the root, which is 1."""
        return len(self.above) + 1

    @property
    def is_member(self) -> bool:
        """Whether it is one of a root's several message types, which always have columns."""
        return self.above == (UNION_ROOT,)


def plan(
    roots: Mapping[Root, TypeGraph], options: MappingOptions, *, decided: Mapping[Place, bool], used: int = 0
) -> frozenset[Place]:
    """Places of the messages to expand.

    `decided` tells for places that the ledger knows whether they are expanded; `used` counts the table's leaves
    elsewhere. Raises DescriptorError when the fields that must have a column are more than 10,000.
    """
    needed = used + sum(ROOT_LEAVES + _inner_leaves(graph, graph.root) for graph in roots.values())
    standing = dict(_expand(roots, HARD_DEPTH, lambda spot, _: spot.is_member or decided.get(spot.place, False)))
    needed += sum(standing.values())
    if needed > HARD_COLUMNS:
        raise DescriptorError(
            f"the message needs {needed} columns before any new sub-message is expanded; a table takes {HARD_COLUMNS}",
            messages=tuple(graph.root for graph in roots.values()),
        )
    left = options.max_columns - needed

    def fits(spot: Spot, leaves: int) -> bool:
        nonlocal left
        if spot.place in standing:
            return True
        if (spot.place in decided and not options.expand_cuts) or leaves > left or spot.depth > options.max_depth:
            return False
        left -= leaves
        return True

    return frozenset(place for place, _ in _expand(roots, HARD_DEPTH, fits))


def _expand(
    roots: Mapping[Root, TypeGraph], max_depth: int, accept: Callable[[Spot, int], bool]
) -> Iterator[tuple[Place, int]]:
    """Walks breadth-first into what `accept` takes; yields each place taken with the leaves it adds."""
    level = [Spot((root, ()), graph.root, (), 1) for root, graph in roots.items()]
    while level:
        below: list[Spot] = []
        for parent in level:
            graph = roots[parent.place[0]]
            for spot in sub_messages(graph, parent):
                if why_never(spot, max_depth) is not None:
                    continue
                leaves = _inner_leaves(graph, spot.message)
                if accept(spot, leaves):
                    yield spot.place, leaves
                    below.append(spot)
        level = below


def why_never(spot: Spot, max_depth: int) -> CutReason | None:
    """Why the message can't be expanded whatever the budget, if so."""
    if spot.message in spot.above:
        return CutReason.RECURSION
    if spot.depth > max_depth or spot.level + MAP_LEVELS > MAX_LEVEL:
        return CutReason.DEPTH
    return None


def sub_messages(graph: TypeGraph, parent: Spot) -> Iterator[Spot]:
    """The messages directly below one, by field number."""
    root, path = parent.place
    above = (*parent.above, parent.message)
    for field in graph.types[parent.message].fields:
        message, steps = _target(field)
        if message is not None:
            levels = 3 if field.cardinality is Cardinality.MAP else 1 + len(steps)
            yield Spot((root, (*path, field.number, *steps)), message, above, parent.level + levels)


def _target(field: FieldType) -> tuple[str | None, Path]:
    """The message type a field holds, and the steps from the field to its struct."""
    match field.cardinality:
        case Cardinality.SINGULAR:
            return field.message, ()
        case Cardinality.REPEATED:
            return field.message, (names.ELEMENT_STEP,)
        case Cardinality.MAP:
            assert field.value is not None
            return field.value.message, (names.MAP_VALUE_STEP,)


def _inner_leaves(graph: TypeGraph, message: str) -> int:
    """Leaves that the fields of a message add when it is expanded; its `__unrecognized__` is there either way."""
    return sum(2 if field.cardinality is Cardinality.MAP else 1 for field in graph.types[message].fields)
