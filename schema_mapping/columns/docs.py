"""The texts that tables show for columns: what a schema says about its fields, one line each, at most 255 characters.

They say nothing about bytes, so they are no part of a fingerprint: a new schema version brings the comments it stands
with, and a changed comment alone waits for the next version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from schema_mapping import names
from schema_mapping.columns.graph import ColumnGraph, Held, ListOf, MapOf, StructOf
from schema_mapping.columns.ledger_tree import Node
from schema_mapping.columns.paths import Step

Comments: TypeAlias = Mapping[tuple[str, Step], str]
"""Comments of fields, by the graph's name of their struct and their step."""

LONGEST: Final = 255
ELLIPSIS: Final = "\u2026"


def document(root: Node, graph: ColumnGraph, comments: Comments) -> None:
    """Gives the live columns below a root the comments of their fields, and none to those without."""
    _document(root, graph, graph.root, comments)


def one_line(text: str) -> str:
    """A comment without its line breaks and margins, cut to 255 characters."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - len(ELLIPSIS)].rstrip() + ELLIPSIS


def _document(struct: Node, graph: ColumnGraph, name: str, comments: Comments) -> None:
    live = {node.step: node for node in struct.children if node.live}
    for field in graph.structs[name]:
        node = live.get(field.step)
        if node is not None:
            said = comments.get((name, field.step))
            node.doc = one_line(said) if said else None
            _document_below(node, field.held, graph, comments)


def _document_below(node: Node, held: Held, graph: ColumnGraph, comments: Comments) -> None:
    match held:
        case ListOf():
            _document_below(node.at(names.ELEMENT_STEP)[0], held.element, graph, comments)
        case MapOf():
            _document_below(node.at(names.MAP_VALUE_STEP)[0], held.value, graph, comments)
        case StructOf():
            _document(node, graph, held.name, comments)
        case _:
            return
