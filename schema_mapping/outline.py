"""A table's columns as a tree, from the ledger alone, without `headers` and `kafka`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from schema_mapping.columns.iceberg import column_order
from schema_mapping.columns.ledger import ColumnState, LedgerEntry, LedgerState, Root
from schema_mapping.columns.ledger_tree import ROOT_IDS, ROOTS
from schema_mapping.columns.paths import Path, Step, is_field, is_nanos
from schema_mapping.columns.types import ColumnType
from schema_mapping.names import MEMBER_STEP
from schema_mapping.row import row_mapping_from_text
from schema_mapping.value_format import ValueMapping

ICEBERG_NAMES: Final[dict[str, str]] = {ColumnType.UINT: "int", ColumnType.CUT: "struct"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedOutline:
    number: int
    source_name: str
    protobuf: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOutline:
    """Field values are None for added columns.

    `number` is None for fields by name, and for a value's types. `since` and `removed` are versions; `dropped`: a
    removed column left the table. `cut` is the reason; `excluded` are fields without columns.
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
    """`message` is None without a schema; several names are joined by |."""

    name: Root
    field_id: int
    message: str | None
    columns: tuple[ColumnOutline, ...]
    excluded: tuple[ExcludedOutline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The ledger's columns as of the newest version."""

    version: int
    roots: tuple[RootOutline, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def outline(state: LedgerState) -> Outline:
    """The ledger must have a version."""
    newest = state.versions[-1]
    row = row_mapping_from_text(newest.mapping)
    mappings: dict[Root, ValueMapping] = {"key": row.key, "val": row.value}
    keep = row.options.keep_removed
    roots = (_root(root, mappings[root], state.entries, keep_removed=keep) for root in ROOTS)
    return Outline(version=newest.version, roots=tuple(roots))


def type_name(kind: str) -> str:
    return ICEBERG_NAMES.get(kind, str(kind))


def _root(root: Root, mapping: ValueMapping, entries: tuple[LedgerEntry, ...], *, keep_removed: bool) -> RootOutline:
    below: defaultdict[int, list[LedgerEntry]] = defaultdict(list)
    for entry in sorted(entries, key=column_order):
        if entry.root == root:
            below[entry.parent_id].append(entry)
    top = ROOT_IDS[root]
    columns = _OutlineColumns(mapping, below, keep_removed=keep_removed)
    return RootOutline(
        name=root,
        field_id=top,
        message=" | ".join(mapping.messages) or None,
        columns=columns.of(top),
        excluded=columns.excluded(()),
    )


class _OutlineColumns:
    def __init__(self, mapping: ValueMapping, below: Mapping[int, list[LedgerEntry]], *, keep_removed: bool) -> None:
        self._mapping = mapping
        self._below = below
        self._keep_removed = keep_removed
        self._cuts: dict[Path, str] = {cut.path: cut.reason.value for cut in mapping.cuts}

    def of(self, parent: int) -> tuple[ColumnOutline, ...]:
        return tuple(self._column(entry) for entry in self._below.get(parent, ()))

    def excluded(self, path: Path) -> tuple[ExcludedOutline, ...]:
        return tuple(
            ExcludedOutline(number=field.number, source_name=field.name, protobuf=field.type)
            for field in self._mapping.excluded(path)
        )

    def _column(self, entry: LedgerEntry) -> ColumnOutline:
        live = entry.state is ColumnState.LIVE
        step = entry.path[-1]
        is_declared = is_field(step) and not is_nanos(step)
        field = self._mapping.declared(entry.path) if live and is_declared else None
        named = entry.source_name if field is None else field.name
        return ColumnOutline(
            name=entry.name,
            field_id=entry.field_id,
            type=type_name(str(entry.type)),
            number=_number(step),
            source_name=named if is_declared else None,
            protobuf=None if field is None else field.type,
            since=entry.since_version,
            removed=entry.deleted_version if not live else None,
            dropped=not live and not self._keep_removed,
            cut=self._cuts.get(entry.path) if live else None,
            doc=entry.doc,
            columns=self.of(entry.field_id),
            excluded=self.excluded(entry.path) if live and entry.type is ColumnType.STRUCT else (),
        )


def _number(step: Step) -> int | None:
    return step if isinstance(step, int) and 0 < step < MEMBER_STEP else None
