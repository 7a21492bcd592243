"""The record of cuts: which structs of a mapping are kept whole in their `__unrecognized__`, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schema_mapping.columns.expansion import CutReason, Spot, sub_structs, why_never
from schema_mapping.columns.graph import ColumnGraph
from schema_mapping.columns.ids import AssignedColumn, IdAssignment
from schema_mapping.columns.options import MappingOptions
from schema_mapping.columns.paths import Path, path_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A struct without columns of its own: where it is, by path and dotted name, its type, and the reason.

    `message` is the type's name: a message's full name where the values are Protobuf.
    """

    path: Path
    column: str
    message: str
    reason: CutReason


def find_cuts(graph: ColumnGraph, ids: IdAssignment, options: MappingOptions) -> tuple[Cut, ...]:
    """All cuts of a mapping, by path."""
    columns = ids.by_path()
    found = _below(graph, Spot(("val", ()), graph.root, (), 1), columns, options)
    return tuple(sorted(found, key=lambda cut: path_order(cut.path)))


def _below(
    graph: ColumnGraph, parent: Spot, columns: Mapping[Path, AssignedColumn], options: MappingOptions
) -> Iterator[Cut]:
    for spot in sub_structs(graph, parent):
        path = spot.place[1]
        column = columns.get(path)
        if column is None:
            continue
        if not column.cut:
            yield from _below(graph, spot, columns, options)
            continue
        dotted = ".".join(columns[path[:length]].name for length in range(1, len(path) + 1))
        reason = why_never(graph, spot, options.max_depth) or CutReason.COLUMNS
        yield Cut(path=path, column=dotted, message=spot.struct, reason=reason)
