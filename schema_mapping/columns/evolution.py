"""Applies a schema change to a table's columns (docs/schema-evolution.md).

Each `Shape` takes a column that can hold it, or makes one. The rest is marked deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from schema_mapping import names
from schema_mapping.columns.expansion import Place, plan
from schema_mapping.columns.graph import ColumnGraph, Held, ListOf, MapOf, StructOf
from schema_mapping.columns.ids import ColumnId, ColumnIds
from schema_mapping.columns.ledger import LedgerState, Root
from schema_mapping.columns.ledger_tree import STRUCTS, ColumnNode, LedgerTree, merged_type
from schema_mapping.columns.options import MappingOptions
from schema_mapping.columns.paths import Path, is_field, path_order
from schema_mapping.columns.shape import Shape, field_shape, root_shape
from schema_mapping.columns.types import AnyColumnType, ColumnType
from schema_mapping.columns.unique_names import name_columns

LEAFLESS = (*STRUCTS, ColumnType.LIST, ColumnType.MAP)


class ChangeKind(StrEnum):
    """The fate of a column.

    Without a field it is REMOVED, or DROPPED if the table keeps no removed columns, and KEPT once it keeps them again.
    """

    ADDED = "added"
    RENAMED = "renamed"
    REMOVED = "removed"
    DROPPED = "dropped"
    KEPT = "kept"
    RESTORED = "restored"
    PROMOTED = "promoted"
    REPLACED = "replaced"
    EXPANDED = "expanded"
    CUT = "cut"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change. Changes below an added, removed, restored or replaced column are omitted.

    `before` and `after` are names for RENAMED, else types. `column` is the new dotted name.
    """

    kind: ChangeKind
    root: Root
    path: Path
    field_id: int
    column: str
    before: str | None = None
    after: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "path": list(self.path)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        return cls(**{**data, "kind": ChangeKind(data["kind"]), "path": tuple(data["path"])})


class Evolution:
    """Takes a ledger to a new version: `settle` per root, then `changes`, once.

    `kept_before`: removed columns stayed before this change.
    """

    def __init__(self, ledger: LedgerTree, *, keep_removed: bool = True, kept_before: bool = True) -> None:
        self._ledger = ledger
        self._gone_kind = ChangeKind.REMOVED if keep_removed else ChangeKind.DROPPED
        self._gone_before = list(_gone(ledger)) if keep_removed is not kept_before else []
        self._names = {node.field_id: node.name for root in ledger.roots.values() for node in root.walk()}
        self._found: list[tuple[ChangeKind, ColumnNode, AnyColumnType | None, AnyColumnType | None]] = []

    def settle(self, root: Root, shapes: Iterable[Shape]) -> None:
        top = self._ledger.roots[root]
        self._settle_children(top, shapes, silent=False)
        name_columns(top)

    def changes(self) -> tuple[Change, ...]:
        renamed = (
            (ChangeKind.RENAMED, node, self._names[node.field_id], node.name)
            for root in self._ledger.roots.values()
            for node in root.walk()
            if self._names.get(node.field_id, node.name) != node.name
        )
        kind = ChangeKind.KEPT if self._gone_kind is ChangeKind.REMOVED else ChangeKind.DROPPED
        still_gone = set(_gone(self._ledger))
        moved = ((kind, node, node.type, node.type) for node in self._gone_before if node in still_gone)
        changes = (_change(*change) for change in (*self._found, *renamed, *moved))
        return tuple(
            sorted(changes, key=lambda entry: (entry.root, path_order(entry.path), entry.field_id, entry.kind))
        )

    def _settle_children(self, parent: ColumnNode, shapes: Iterable[Shape], *, silent: bool) -> None:
        chosen = {id(self._settle(parent, shape, silent=silent)) for shape in shapes}
        for child in parent.children:
            if child.live and id(child) not in chosen:
                replaced = any(sibling.live for sibling in parent.at(child.step) if sibling is not child)
                self._retire(child)
                if not silent and not replaced:
                    self._found.append((self._gone_kind, child, child.type, None))

    def _settle(self, parent: ColumnNode, shape: Shape, *, silent: bool) -> ColumnNode:
        node = self._ledger.choose(parent, shape)
        if node is None:
            rival = next((candidate for candidate in parent.at(shape.step) if candidate.live), None)
            node = self._ledger.create(parent, shape)
            if not silent:
                kind = ChangeKind.ADDED if rival is None else ChangeKind.REPLACED
                self._found.append((kind, node, None if rival is None else rival.type, shape.type))
            self._settle_children(node, shape.children, silent=True)
            return node
        silent = self._revive(node, shape, silent=silent)
        self._retype(node, shape.type, silent=silent)
        self._settle_children(node, shape.children, silent=silent)
        return node

    def _revive(self, node: ColumnNode, shape: Shape, *, silent: bool) -> bool:
        """Return whether changes below it are omitted."""
        node.keeps_name = node.live and node.source_name == shape.name
        node.source_name = shape.name
        if node.live:
            return silent
        node.live, node.deleted = True, None
        if not silent:
            self._found.append((ChangeKind.RESTORED, node, None, shape.type))
        return True

    def _retype(self, node: ColumnNode, wanted: AnyColumnType, *, silent: bool) -> None:
        merged = merged_type(node.type, wanted)
        if merged is None and node.field_id in self._ledger.again:
            return
        before, node.type = node.type, merged or wanted
        if silent or before == node.type:
            return
        if merged is None:
            self._found.append((ChangeKind.PROMOTED, node, before, wanted))
        elif wanted in STRUCTS:
            kind = ChangeKind.EXPANDED if wanted is ColumnType.STRUCT else ChangeKind.CUT
            self._found.append((kind, node, before, wanted))

    def _retire(self, node: ColumnNode) -> None:
        for descendant in node.walk():
            if descendant.live:
                descendant.live, descendant.deleted = False, self._ledger.version


def _gone(ledger: LedgerTree) -> Iterator[ColumnNode]:
    live = (node for root in ledger.roots.values() for node in root.walk() if node.live)
    return (child for node in live for child in node.children if not child.live)


def _change(
    kind: ChangeKind, node: ColumnNode, before: AnyColumnType | str | None, after: AnyColumnType | str | None
) -> Change:
    return Change(
        kind=kind,
        root=node.root,
        path=node.path,
        field_id=node.field_id,
        column=node.dotted(),
        before=None if before is None else str(before),
        after=None if after is None else str(after),
    )


def expand(
    ledger: LedgerTree, graphs: Mapping[Root, ColumnGraph], options: MappingOptions, fixed_leaves: int
) -> frozenset[Place]:
    decided: dict[Place, bool] = {}
    matched: set[int] = set()
    for root, graph in graphs.items():
        for node, spot in _matched(ledger, graph, graph.root, ledger.roots[root]):
            matched.add(node.field_id)
            if spot is not None:
                decided[spot] = node.type is ColumnType.STRUCT
    used = fixed_leaves
    if options.keep_removed:
        used += sum(_gone_leaves(root, matched) for root in ledger.roots.values())
    return plan(graphs, options, decided=decided, used=used)


def _matched(
    ledger: LedgerTree, graph: ColumnGraph, name: str, struct: ColumnNode
) -> Iterator[tuple[ColumnNode, Place | None]]:
    """With a struct's place."""
    yield from ((child, None) for child in struct.at(names.UNRECOGNIZED_STEP))
    for field in graph.structs[name]:
        node = ledger.choose(struct, field_shape(graph, field, (), ()))
        if node is not None:
            yield from _matched_below(ledger, graph, field.held, node)


def _matched_below(
    ledger: LedgerTree, graph: ColumnGraph, held: Held, node: ColumnNode
) -> Iterator[tuple[ColumnNode, Place | None]]:
    match held:
        case ListOf():
            yield from _matched_below(ledger, graph, held.element, node.at(names.ELEMENT_STEP)[0])
        case MapOf():
            yield node.at(names.MAP_KEY_STEP)[0], None
            yield from _matched_below(ledger, graph, held.value, node.at(names.MAP_VALUE_STEP)[0])
        case StructOf():
            yield node, (node.root, node.path)
            if node.type is ColumnType.STRUCT:
                yield from _matched(ledger, graph, held.name, node)
        case _:
            yield node, None


def _gone_leaves(root: ColumnNode, matched: set[int]) -> int:
    nodes = (node for child in root.children if is_field(child.step) for node in child.walk())
    return sum(1 for node in nodes if node.type not in LEAFLESS and node.field_id not in matched)


def live_ids(ledger: LedgerTree, root: Root) -> ColumnIds:
    nodes = (node for child in ledger.roots[root].children for node in child.walk() if node.live)
    columns = (
        ColumnId(path=node.path, field_id=node.field_id, name=node.name, cut=node.type is ColumnType.CUT)
        for node in nodes
    )
    return ColumnIds(columns=tuple(sorted(columns, key=lambda column: path_order(column.path))))


def first_ids(graph: ColumnGraph, options: MappingOptions) -> ColumnIds:
    ledger = LedgerTree(LedgerState(last_id=0), version=1)
    places = expand(ledger, {"val": graph}, options, fixed_leaves=0)
    Evolution(ledger).settle("val", root_shape(graph, paths_of(places, "val")))
    return live_ids(ledger, "val")


def paths_of(places: Iterable[Place], root: Root) -> frozenset[Path]:
    return frozenset(path for place_root, path in places if place_root == root)
