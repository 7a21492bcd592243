"""A table's columns as a tree for people: id, type, the Protobuf field behind each, since when, and what is cut.

Made from the ledger alone, so it needs neither the table nor Kafka. The columns that are the same in every table
(`headers`, `kafka`) aren't in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping as MappingOf
from dataclasses import asdict, dataclass
from typing import Any

from schema_mapping.iceberg_types import column_order
from schema_mapping.ledger import ColumnState, ColumnType, LedgerEntry, LedgerState, Path, Root
from schema_mapping.ledger_tree import ROOT_IDS, ROOTS
from schema_mapping.mapping import RawMapping
from schema_mapping.names import MEMBER_STEP
from schema_mapping.protobuf_names import DeclaredFields, declared, field_name
from schema_mapping.row import AnyMapping, row_mapping_from_text
from schema_mapping.union_mapping import UnionMapping

ICEBERG_NAMES = {ColumnType.UINT: "int", ColumnType.CUT: "struct"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedOutline:
    """A field that the .proto wants no column for: its bytes are in `__unrecognized__` of its message."""

    number: int
    source_name: str
    protobuf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOutline:
    """One column. `number`, `source_name` and `protobuf` describe its field and are None for a column of ours.

    An extension's `source_name` is its full name in brackets; one of several message types of a key or value has no
    number, and the message's name. `since` and `removed` are schema versions; `dropped` tells that a removed column has
    left the table. `cut` is the reason why a message is kept whole in `__unrecognized__`, `excluded` are fields of a
    message without a column.
    """

    name: str
    field_id: int
    type: str
    number: int | None
    source_name: str | None
    protobuf: str | None
    since: int
    removed: int | None
    dropped: bool
    cut: str | None
    doc: str | None
    columns: tuple[ColumnOutline, ...]
    excluded: tuple[ExcludedOutline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RootOutline:
    """The columns of a key or value: its message (None without a schema, several with | between), and all below it."""

    name: Root
    field_id: int
    message: str | None
    columns: tuple[ColumnOutline, ...]
    excluded: tuple[ExcludedOutline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """All columns of a table that the ledger gave, as the newest schema version left them."""

    version: int
    roots: tuple[RootOutline, ...]

    def to_json(self) -> dict[str, Any]:
        """A JSON object of the tree."""
        return asdict(self)


def outline(state: LedgerState) -> Outline:
    """The tree of a ledger that has at least one schema version."""
    newest = state.versions[-1]
    row = row_mapping_from_text(newest.mapping)
    mappings: dict[Root, AnyMapping] = {"key": row.key, "val": row.value}
    keep = row.options.keep_removed
    roots = (_root(root, mappings[root], state.entries, keep_removed=keep) for root in ROOTS)
    return Outline(version=newest.version, roots=tuple(roots))


def type_name(kind: ColumnType | str) -> str:
    """The name of a column's type as Iceberg has it."""
    return ICEBERG_NAMES.get(ColumnType(kind), str(kind))


def _root(root: Root, mapping: AnyMapping, entries: tuple[LedgerEntry, ...], *, keep_removed: bool) -> RootOutline:
    below: defaultdict[int, list[LedgerEntry]] = defaultdict(list)
    for entry in sorted(entries, key=column_order):
        if entry.root == root:
            below[entry.parent_id].append(entry)
    top = ROOT_IDS[root]
    columns = _Columns(mapping, below, keep_removed=keep_removed)
    return RootOutline(
        name=root,
        field_id=top,
        message=_messages(mapping),
        columns=columns.of(top),
        excluded=columns.excluded(()),
    )


def _messages(mapping: AnyMapping) -> str | None:
    match mapping:
        case RawMapping():
            return None
        case UnionMapping():
            return " | ".join(mapping.messages)
        case _:
            return mapping.message


class _Columns:
    def __init__(self, mapping: AnyMapping, below: MappingOf[int, list[LedgerEntry]], *, keep_removed: bool) -> None:
        mapped = None if isinstance(mapping, RawMapping) else mapping
        self._below = below
        self._keep_removed = keep_removed
        self._declared = DeclaredFields(mapped.graph) if mapped else None
        self._cuts: dict[Path, str] = {cut.path: cut.reason.value for cut in mapped.cuts} if mapped else {}

    def of(self, parent: int) -> tuple[ColumnOutline, ...]:
        return tuple(self._column(entry) for entry in self._below.get(parent, ()))

    def excluded(self, path: Path) -> tuple[ExcludedOutline, ...]:
        fields = self._declared.message(path).excluded if self._declared else ()
        return tuple(
            ExcludedOutline(number=field.number, source_name=field_name(field), protobuf=declared(field))
            for field in fields
        )

    def _column(self, entry: LedgerEntry) -> ColumnOutline:
        live = entry.state is ColumnState.LIVE
        is_field = entry.path[-1] > 0
        field = self._declared.field(entry.path) if live and is_field and self._declared else None
        named = entry.source_name if field is None else field_name(field)
        return ColumnOutline(
            name=entry.name,
            field_id=entry.field_id,
            type=type_name(entry.type),
            number=entry.path[-1] if 0 < entry.path[-1] < MEMBER_STEP else None,
            source_name=named if is_field else None,
            protobuf=None if field is None else declared(field),
            since=entry.since_version,
            removed=entry.deleted_version if not live else None,
            dropped=not live and not self._keep_removed,
            cut=self._cuts.get(entry.path) if live else None,
            doc=entry.doc,
            columns=self.of(entry.field_id),
            excluded=self.excluded(entry.path) if live and entry.type is ColumnType.STRUCT else (),
        )
