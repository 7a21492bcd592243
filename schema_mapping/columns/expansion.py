"""Decides which structs are expanded to columns, and which are cut: kept whole as bytes.

Breadth-first, while leaf columns fit; never recursive or too deep structs. Earlier decisions stand. Limits:
docs/type-mapping.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from schema_mapping.columns.graph import ColumnGraph, held_structs, leaves, levels
from schema_mapping.columns.ids import ColumnId, ColumnIds
from schema_mapping.columns.ledger import Root
from schema_mapping.columns.options import HARD_COLUMNS, HARD_DEPTH, MappingOptions
from schema_mapping.columns.paths import Path, path_order
from schema_mapping.errors import DescriptorError

Place: TypeAlias = tuple[Root, Path]

# Arrow's C interface reads schemas of 64 levels, including the batch itself; a map below a struct adds up to 4.
MAX_LEVEL: Final = 60
MAP_LEVELS: Final = 4
ROOT_LEAVES: Final = 5


class CutReason(StrEnum):
    RECURSION = "its type is already on the path from the root"
    DEPTH = "it lies too deep"
    COLUMNS = "its columns did not fit"


@dataclass(frozen=True, slots=True)
class Spot:
    """`above` are the structs above it."""

    place: Place
    struct: str
    above: tuple[str, ...]
    level: int

    @property
    def depth(self) -> int:
        return len(self.above) + 1


def plan(
    roots: Mapping[Root, ColumnGraph], options: MappingOptions, *, decided: Mapping[Place, bool], used: int = 0
) -> frozenset[Place]:
    """Return the structs to expand. `used` counts the table's other leaf columns.

    `decided` are the ledger's decisions. Raises DescriptorError if these need more than 10,000 leaf columns.
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

    return frozenset(expanded for expanded, _ in _expand(roots, HARD_DEPTH, fits))


def _expand(
    roots: Mapping[Root, ColumnGraph], max_depth: int, accept: Callable[[Spot, int], bool]
) -> Iterator[tuple[Place, int]]:
    level = [Spot((root, ()), graph.root, (), 1) for root, graph in roots.items()]
    while level:
        below: list[Spot] = []
        for parent in level:
            graph = roots[parent.place[0]]
            for spot in sub_structs(graph, parent):
                if cut_reason(graph, spot, max_depth) is not None:
                    continue
                added = _inner_leaves(graph, spot.struct)
                if accept(spot, added):
                    yield spot.place, added
                    below.append(spot)
        level = below


def cut_reason(graph: ColumnGraph, spot: Spot, max_depth: int) -> CutReason | None:
    """Return why no budget expands a struct, or None."""
    if spot.struct in spot.above:
        return CutReason.RECURSION
    if spot.depth > max_depth or not _fits_arrow(graph, spot):
        return CutReason.DEPTH
    return None


def _is_member(roots: Mapping[Root, ColumnGraph], spot: Spot) -> bool:
    """These always have columns."""
    graph = roots[spot.place[0]]
    return graph.one_of and spot.above == (graph.root,)


def sub_structs(graph: ColumnGraph, parent: Spot) -> Iterator[Spot]:
    root, path = parent.place
    above = (*parent.above, parent.struct)
    for field in graph.structs[parent.struct]:
        for struct, steps, down in held_structs(field.held):
            yield Spot((root, (*path, field.step, *steps)), struct.name, above, parent.level + down)


def _inner_leaves(graph: ColumnGraph, struct: str) -> int:
    return sum(leaves(field.held) for field in graph.structs[struct])


def _fits_arrow(graph: ColumnGraph, spot: Spot) -> bool:
    deepest = max((levels(field.held) for field in graph.structs[spot.struct]), default=0)
    return spot.level + max(deepest, MAP_LEVELS) <= MAX_LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class CutStruct:
    """`message` is the name of its type."""

    path: Path
    column: str
    message: str
    reason: CutReason


def find_cuts(graph: ColumnGraph, ids: ColumnIds, options: MappingOptions) -> tuple[CutStruct, ...]:
    columns = ids.by_path()
    cuts = _cuts_below(graph, Spot(("val", ()), graph.root, (), 1), columns, options)
    return tuple(sorted(cuts, key=lambda cut: path_order(cut.path)))


def _cuts_below(
    graph: ColumnGraph, parent: Spot, columns: Mapping[Path, ColumnId], options: MappingOptions
) -> Iterator[CutStruct]:
    for spot in sub_structs(graph, parent):
        path = spot.place[1]
        column = columns.get(path)
        if column is None:
            continue
        if not column.cut:
            yield from _cuts_below(graph, spot, columns, options)
            continue
        dotted = ".".join(columns[path[:length]].name for length in range(1, len(path) + 1))
        reason = cut_reason(graph, spot, options.max_depth) or CutReason.COLUMNS
        yield CutStruct(path=path, column=dotted, message=spot.struct, reason=reason)
