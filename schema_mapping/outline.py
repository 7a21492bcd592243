"""A table's columns as a tree for people: id, type, the Protobuf field behind each, since when, and what is cut.

Made from the ledger alone, so it needs neither the table nor Kafka. The columns that are the same in every table
(`headers`, `kafka`) aren't in it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping as MappingOf
from dataclasses import asdict, dataclass
from typing import Any

from schema_mapping.iceberg_types import column_order
from schema_mapping.ledger import ColumnState, ColumnType, LedgerEntry, LedgerState, Path, Root
from schema_mapping.ledger_tree import ROOT_IDS, ROOTS
from schema_mapping.mapping import Mapping, RawMapping
from schema_mapping.protobuf_names import TypeNames
from schema_mapping.row import row_mapping_from_json

ICEBERG_NAMES = {ColumnType.UINT: "int", ColumnType.CUT: "struct"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOutline:
    """One column. `number`, `source_name` and `protobuf` describe its field and are None for a column of ours.

    `since` and `removed` are schema versions. `cut` is the reason why a message is kept whole in `__unrecognized__`.
    """

    name: str
    field_id: int
    type: str
    number: int | None
    source_name: str | None
    protobuf: str | None
    since: int
    removed: int | None
    cut: str | None
    doc: str | None
    columns: tuple[ColumnOutline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RootOutline:
    """The columns of a key or value: its message (None without a schema), and everything below it."""

    name: Root
    field_id: int
    message: str | None
    columns: tuple[ColumnOutline, ...]


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
    row = row_mapping_from_json(json.loads(newest.mapping))
    mappings: dict[Root, Mapping | RawMapping] = {"key": row.key, "val": row.value}
    return Outline(version=newest.version, roots=tuple(_root(root, mappings[root], state.entries) for root in ROOTS))


def type_name(kind: ColumnType | str) -> str:
    """The name of a column's type as Iceberg has it."""
    return ICEBERG_NAMES.get(ColumnType(kind), str(kind))


def _root(root: Root, mapping: Mapping | RawMapping, entries: tuple[LedgerEntry, ...]) -> RootOutline:
    below: defaultdict[int, list[LedgerEntry]] = defaultdict(list)
    for entry in sorted(entries, key=column_order):
        if entry.root == root:
            below[entry.parent_id].append(entry)
    message = mapping.message if isinstance(mapping, Mapping) else None
    top = ROOT_IDS[root]
    columns = _Columns(mapping, below).of(top)
    return RootOutline(name=root, field_id=top, message=message, columns=columns)


class _Columns:
    def __init__(self, mapping: Mapping | RawMapping, below: MappingOf[int, list[LedgerEntry]]) -> None:
        mapped = mapping if isinstance(mapping, Mapping) else None
        self._below = below
        self._types = TypeNames(mapped.graph) if mapped else None
        self._cuts: dict[Path, str] = {cut.path: cut.reason.value for cut in mapped.cuts} if mapped else {}

    def of(self, parent: int) -> tuple[ColumnOutline, ...]:
        return tuple(self._column(entry) for entry in self._below.get(parent, ()))

    def _column(self, entry: LedgerEntry) -> ColumnOutline:
        live = entry.state is ColumnState.LIVE
        is_field = entry.path[-1] > 0
        return ColumnOutline(
            name=entry.name,
            field_id=entry.field_id,
            type=type_name(entry.type),
            number=entry.path[-1] if is_field else None,
            source_name=entry.source_name if is_field else None,
            protobuf=self._types.at(entry.path) if live and is_field and self._types else None,
            since=entry.since_version,
            removed=entry.deleted_version if not live else None,
            cut=self._cuts.get(entry.path) if live else None,
            doc=entry.doc,
            columns=self.of(entry.field_id),
        )
