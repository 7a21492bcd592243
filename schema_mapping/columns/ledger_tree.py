"""The ledger as a mutable tree. A field's generations are siblings."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from schema_mapping import names
from schema_mapping.columns.ledger import ColumnState, LedgerEntry, LedgerState, Root
from schema_mapping.columns.paths import Path, Step
from schema_mapping.columns.shape import Shape
from schema_mapping.columns.types import AnyColumnType, ColumnType, widens

ROOT_IDS: dict[Root, int] = {"key": 1, "val": 2}
ROOTS: tuple[Root, ...] = ("key", "val")
STRUCTS = (ColumnType.STRUCT, ColumnType.CUT)
INTS = (ColumnType.INT, ColumnType.UINT)


class ColumnFit(IntEnum):
    AS_IS = 0
    WIDENED = 1


@dataclass(slots=True, kw_only=True, eq=False)
class ColumnNode:
    """`keeps_name`: it stays live and its source name is unchanged."""

    root: Root
    path: Path
    generation: int
    parent: ColumnNode | None
    field_id: int
    name: str
    source_name: str
    type: AnyColumnType
    live: bool
    since: int
    deleted: int | None
    doc: str | None = None
    keeps_name: bool = False
    children: list[ColumnNode] = field(default_factory=list)
    _by_step: dict[Step, list[ColumnNode]] = field(default_factory=dict)

    @property
    def step(self) -> Step:
        return self.path[-1]

    def add(self, child: ColumnNode) -> None:
        self.children.append(child)
        self._by_step.setdefault(child.step, []).append(child)

    def at(self, step: Step) -> Sequence[ColumnNode]:
        """The generations of a field."""
        return self._by_step.get(step, ())

    def entry(self) -> LedgerEntry:
        assert self.parent is not None
        return LedgerEntry(
            root=self.root,
            path=self.path,
            generation=self.generation,
            parent_id=self.parent.field_id,
            field_id=self.field_id,
            name=self.name,
            source_name=self.source_name,
            type=self.type,
            state=ColumnState.LIVE if self.live else ColumnState.DELETED,
            since_version=self.since,
            deleted_version=self.deleted,
            doc=self.doc,
        )

    def walk(self) -> Iterator[ColumnNode]:
        yield self
        for child in self.children:
            yield from child.walk()

    def dotted(self) -> str:
        return self.name if self.parent is None else f"{self.parent.dotted()}.{self.name}"


class LedgerTree:
    """Finds or makes columns for shapes.

    `again` are columns of an older version in force again; its shapes get them, even if widened.
    """

    def __init__(self, state: LedgerState, version: int, *, again: Container[int] = ()) -> None:
        self.version = version
        self.again = again
        self.last_id = state.last_id
        self.roots = {root: _root(root) for root in ROOTS}
        self._generations: dict[tuple[Root, Path], int] = {}
        nodes = {node.field_id: node for node in self.roots.values()}
        for entry in sorted(state.entries, key=lambda item: len(item.path)):
            node = _node(entry, nodes[entry.parent_id])
            nodes[entry.field_id] = node
            self._count(node)

    def _count(self, node: ColumnNode) -> None:
        key = (node.root, node.path)
        self._generations[key] = max(self._generations.get(key, -1), node.generation)

    def choose(self, parent: ColumnNode, shape: Shape) -> ColumnNode | None:
        """A column as it is before a widened one, live before deleted, then the oldest generation."""
        for node in parent.at(shape.step):
            if node.field_id in self.again:
                return node
        ranked = [
            (fit, not node.live, node.generation, node)
            for node in parent.at(shape.step)
            if (fit := fit_of(node, shape)) is not None
        ]
        return min(ranked, key=lambda candidate: candidate[:3])[3] if ranked else None

    def create(self, parent: ColumnNode, shape: Shape) -> ColumnNode:
        path = (*parent.path, shape.step)
        self.last_id += 1
        node = ColumnNode(
            root=parent.root,
            path=path,
            generation=self._generations.get((parent.root, path), -1) + 1,
            parent=parent,
            field_id=self.last_id,
            name="",
            source_name=shape.name,
            type=shape.type,
            live=True,
            since=self.version,
            deleted=None,
        )
        parent.add(node)
        self._count(node)
        return node

    def entries(self) -> tuple[LedgerEntry, ...]:
        nodes = (node for root in self.roots.values() for child in root.children for node in child.walk())
        return tuple(sorted((node.entry() for node in nodes), key=lambda entry: entry.field_id))


def fit_of(node: ColumnNode, shape: Shape) -> ColumnFit | None:
    """Return how the column can hold values in place, or None."""
    match node.type, shape.type:
        case ColumnType.LIST, ColumnType.LIST:
            return fit_of(_child(node, names.ELEMENT_STEP), _part(shape, names.ELEMENT_STEP))
        case ColumnType.MAP, ColumnType.MAP:
            if fit_of(_child(node, names.MAP_KEY_STEP), _part(shape, names.MAP_KEY_STEP)) is not ColumnFit.AS_IS:
                return None
            return fit_of(_child(node, names.MAP_VALUE_STEP), _part(shape, names.MAP_VALUE_STEP))
        case column, wanted:
            if merged_type(column, wanted) is not None:
                return ColumnFit.AS_IS
            return ColumnFit.WIDENED if widens(column, wanted) else None


def merged_type(column: AnyColumnType, wanted: AnyColumnType) -> AnyColumnType | None:
    """None if the Iceberg type would change."""
    if column == wanted:
        return column
    if column in INTS and wanted in INTS:
        return ColumnType.UINT
    return wanted if column in STRUCTS and wanted in STRUCTS else None


def _child(node: ColumnNode, step: int) -> ColumnNode:
    return node.at(step)[0]


def _part(shape: Shape, step: int) -> Shape:
    return next(child for child in shape.children if child.step == step)


def _root(root: Root) -> ColumnNode:
    return ColumnNode(
        root=root,
        path=(),
        generation=0,
        parent=None,
        field_id=ROOT_IDS[root],
        name=root,
        source_name=root,
        type=ColumnType.STRUCT,
        live=True,
        since=1,
        deleted=None,
    )


def _node(entry: LedgerEntry, parent: ColumnNode) -> ColumnNode:
    node = ColumnNode(
        root=entry.root,
        path=entry.path,
        generation=entry.generation,
        parent=parent,
        field_id=entry.field_id,
        name=entry.name,
        source_name=entry.source_name,
        type=entry.type,
        live=entry.state is ColumnState.LIVE,
        since=entry.since_version,
        deleted=entry.deleted_version,
        doc=entry.doc,
    )
    parent.add(node)
    return node
