"""The record of cuts: which messages of a mapping are kept whole in their `__unrecognized__`, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schema_mapping.expansion import CutReason, Spot, sub_messages, why_never
from schema_mapping.ids import AssignedColumn, IdAssignment
from schema_mapping.ledger import Path
from schema_mapping.options import MappingOptions
from schema_mapping.type_graph import TypeGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A message without columns of its own: where it is, by path and dotted name, its type, and the reason."""

    path: Path
    column: str
    message: str
    reason: CutReason


def find_cuts(graph: TypeGraph, ids: IdAssignment, options: MappingOptions) -> tuple[Cut, ...]:
    """All cuts of a mapping, by path."""
    columns = ids.by_path()
    found = _below(graph, Spot(("val", ()), graph.root, (), 1), columns, options)
    return tuple(sorted(found, key=lambda cut: cut.path))


def _below(
    graph: TypeGraph, parent: Spot, columns: Mapping[Path, AssignedColumn], options: MappingOptions
) -> Iterator[Cut]:
    for spot in sub_messages(graph, parent):
        path = spot.place[1]
        column = columns.get(path)
        if column is None:
            continue
        if not column.cut:
            yield from _below(graph, spot, columns, options)
            continue
        dotted = ".".join(columns[path[:length]].name for length in range(1, len(path) + 1))
        reason = why_never(spot, options.max_depth) or CutReason.COLUMNS
        yield Cut(path=path, column=dotted, message=spot.message, reason=reason)
