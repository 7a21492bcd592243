"""Joins message types to one graph: the root's fields are the messages.

The ledger assigns a step per full name once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count

from schema_mapping.columns.ledger import LedgerEntry, Root
from schema_mapping.names import MEMBER_STEP
from schema_mapping.protobuf.field_kinds import Cardinality, WireKind
from schema_mapping.protobuf.type_graph import UNION_ROOT, FieldType, MessageType, TypeGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionGraph:
    """`keys` has, by step, the types with another key in the graph."""

    graph: TypeGraph
    keys: Mapping[int, Mapping[str, str]]


def member_steps(entries: Iterable[LedgerEntry], root: Root, messages: Iterable[str]) -> dict[str, int]:
    """Return each message's step in the ledger, or the next free one."""
    tops = ((entry.source_name, entry.path[0]) for entry in entries if entry.root == root and len(entry.path) == 1)
    assigned = {name: step for name, step in tops if isinstance(step, int) and step > MEMBER_STEP}
    fresh = count(max(assigned.values(), default=MEMBER_STEP) + 1)
    return {name: assigned[name] if name in assigned else next(fresh) for name in sorted(messages)}


def unite(members: Mapping[int, TypeGraph]) -> UnionGraph:
    """Members keep their definitions, also under equal names."""
    types: dict[str, MessageType] = {}
    keys: dict[int, dict[str, str]] = {}
    roots: dict[int, str] = {}
    for step, graph in sorted(members.items()):
        keys[step] = {name: f"{name} in {graph.root}" for name in _clashing(graph, types)}
        roots[step] = keys[step].get(graph.root, graph.root)
        types.update((keys[step].get(name, name), _renamed(kind, keys[step])) for name, kind in graph.types.items())
    fields = tuple(_member(step, members[step].root, key) for step, key in sorted(roots.items()))
    types[UNION_ROOT] = MessageType(full_name=UNION_ROOT, fields=fields, message_set=False)
    return UnionGraph(graph=TypeGraph(root=UNION_ROOT, types=types), keys=keys)


def _clashing(graph: TypeGraph, types: Mapping[str, MessageType]) -> set[str]:
    """Return types that differ from types of the same name, or contain such a type."""
    clashing = {name for name, kind in graph.types.items() if types.get(name, kind) != kind}
    while more := {
        name
        for name, kind in graph.types.items()
        if name not in clashing and not clashing.isdisjoint(field.held_message for field in kind.fields)
    }:
        clashing |= more
    return clashing


def _renamed(kind: MessageType, keys: Mapping[str, str]) -> MessageType:
    if not keys:
        return kind
    fields = tuple(_redirected(field, keys) for field in kind.fields)
    return replace(kind, full_name=keys.get(kind.full_name, kind.full_name), fields=fields)


def _redirected(field: FieldType, keys: Mapping[str, str]) -> FieldType:
    value = None if field.value is None else _redirected(field.value, keys)
    message = None if field.message is None else keys.get(field.message, field.message)
    return replace(field, message=message, value=value)


def _member(step: int, message: str, key: str) -> FieldType:
    return FieldType(
        number=step,
        name=message,
        kind=WireKind.MESSAGE,
        cardinality=Cardinality.SINGULAR,
        explicit_presence=True,
        packed=False,
        validate_utf8=False,
        required=False,
        oneof=None,
        enum=None,
        message=key,
        key=None,
        value=None,
    )
