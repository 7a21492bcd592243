"""Unique, stable names of columns, ignoring case.

A taken name becomes `<name>_<field number>`, or `<name>_<field id>` without numbers; an older generation's
`<name>_deleted_<id>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from schema_mapping import names
from schema_mapping.columns.ledger_tree import STRUCTS, ColumnNode
from schema_mapping.columns.paths import field_step, is_field, is_nanos, step_order

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def member_column(type_name: str) -> str:
    """The type's short name in snake_case."""
    return _WORD_STARTS.sub("_", type_name.rpartition(".")[2]).lower()


def name_columns(struct: ColumnNode) -> None:
    if struct.type in STRUCTS:
        _name_fields([child for child in struct.children if is_field(child.step)])
    for child in struct.children:
        if isinstance(child.step, int) and not is_field(child.step):
            child.name = names.STEP_NAMES[child.step]
        if child.live:
            name_columns(child)


def _name_fields(fields: Iterable[ColumnNode]) -> None:
    ordered = sorted(fields, key=lambda node: (is_nanos(node.step), step_order(field_step(node.step)), node.generation))
    live = [node for node in ordered if node.live]
    taken = set(names.RESERVED)
    yielding: list[ColumnNode] = []
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


def _name_deleted(node: ColumnNode, *, superseded: bool, taken: set[str]) -> None:
    mark = f"_deleted_{node.field_id}"
    if superseded and mark not in node.name:
        _take(node, f"{node.name}{mark}", taken)
    elif node.name.lower() in taken:
        _take(node, _with_number(node, node.name), taken)
    else:
        taken.add(node.name.lower())


def _plain_name(node: ColumnNode) -> str:
    if isinstance(node.step, int) and node.step > names.MEMBER_STEP:
        return member_column(node.source_name)
    return node.source_name


def _with_number(node: ColumnNode, name: str) -> str:
    step = field_step(node.step)
    if isinstance(step, str):
        return f"{name}_{node.field_id}"
    return f"{name}_{step if step < names.MEMBER_STEP else step - names.MEMBER_STEP}"


def _take(node: ColumnNode, name: str, taken: set[str]) -> None:
    while name.lower() in taken:
        name = f"{name}_{node.field_id}"
    node.name = name
    taken.add(name.lower())
