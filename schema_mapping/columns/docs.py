"""Comments of columns: one line, at most 255 characters.

Not in fingerprints: a change waits for the next schema version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from schema_mapping import names
from schema_mapping.columns.graph import ColumnGraph, Held, ListOf, MapOf, StructOf
from schema_mapping.columns.ledger_tree import ColumnNode
from schema_mapping.columns.paths import Step, field_step, is_nanos

Comments: TypeAlias = Mapping[tuple[str, Step], str]
"""Comments of fields, by the name of their struct in the graph and their step."""

LONGEST: Final = 255
ELLIPSIS: Final = "\u2026"


def document(root: ColumnNode, graph: ColumnGraph, comments: Comments) -> None:
    """Set or clear comments of live columns below a root."""
    _document(root, graph, graph.root, comments)


def one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - len(ELLIPSIS)].rstrip() + ELLIPSIS


def nanos_comment(column: str) -> str:
    return f"nanoseconds of `{column}` below its microseconds, 0 to 999"


def _document(struct: ColumnNode, graph: ColumnGraph, name: str, comments: Comments) -> None:
    live = {node.step: node for node in struct.children if node.live}
    for field in graph.structs[name]:
        node = live.get(field.step)
        if node is not None:
            time = live.get(field_step(field.step)) if is_nanos(field.step) else None
            comment = comments.get((name, field.step)) if time is None else nanos_comment(time.name)
            node.doc = one_line(comment) if comment else None
            _document_below(node, field.held, graph, comments)


def _document_below(node: ColumnNode, held: Held, graph: ColumnGraph, comments: Comments) -> None:
    match held:
        case ListOf():
            _document_below(node.at(names.ELEMENT_STEP)[0], held.element, graph, comments)
        case MapOf():
            _document_below(node.at(names.MAP_VALUE_STEP)[0], held.value, graph, comments)
        case StructOf():
            _document(node, graph, held.name, comments)
        case _:
            return
