"""Column names within one struct: unique whatever the case, never a reserved one, and stable.

The live field owns its plain name; who must yield is `<name>_<field number>`, an older generation of a live field
`<name>_deleted_<id>`. A live field keeps the name it has until the field itself is renamed.
"""

from __future__ import annotations

from collections.abc import Iterable

from schema_mapping import names
from schema_mapping.ledger_tree import STRUCTS, Node
from schema_mapping.union import member_column


def name_columns(struct: Node) -> None:
    """Names the columns of a live struct and of the live ones below it."""
    if struct.type in STRUCTS:
        _name_fields([child for child in struct.children if child.step > 0])
    for child in struct.children:
        if child.step < 0:
            child.name = names.STEP_NAMES[child.step]
        if child.live:
            name_columns(child)


def _name_fields(fields: Iterable[Node]) -> None:
    ordered = sorted(fields, key=lambda node: (node.step, node.generation))
    live = [node for node in ordered if node.live]
    taken = set(names.RESERVED)
    yielding: list[Node] = []
    for node in live:
        if node.keeps_name:
            taken.add(node.name.lower())
    for node in live:
        if node.keeps_name:
            continue
        if _plain_name(node).lower() in taken:
            yielding.append(node)
        else:
            node.name = _plain_name(node)
            taken.add(node.name.lower())
    for node in yielding:
        _take(node, _with_number(node, _plain_name(node)), taken)
    steps = {node.step for node in live}
    for node in ordered:
        if not node.live:
            _name_deleted(node, superseded=node.step in steps, taken=taken)


def _name_deleted(node: Node, *, superseded: bool, taken: set[str]) -> None:
    mark = f"_deleted_{node.field_id}"
    if superseded and mark not in node.name:
        _take(node, f"{node.name}{mark}", taken)
    elif node.name.lower() in taken:
        _take(node, _with_number(node, node.name), taken)
    else:
        taken.add(node.name.lower())


def _plain_name(node: Node) -> str:
    return member_column(node.source_name) if node.step > names.MEMBER_STEP else node.source_name


def _with_number(node: Node, name: str) -> str:
    return f"{name}_{node.step if node.step < names.MEMBER_STEP else node.step - names.MEMBER_STEP}"


def _take(node: Node, name: str, taken: set[str]) -> None:
    while name.lower() in taken:
        name = f"{name}_{node.field_id}"
    node.name = name
    taken.add(name.lower())
