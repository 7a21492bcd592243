"""Columns that replaced older ones after a change of type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from schema_mapping.columns.ledger import ColumnState, LedgerEntry, LedgerState
from schema_mapping.columns.types import AnyColumnType, ColumnType
from schema_mapping.row import RowMapping, row_mapping_from_text

_CASTS: Final[Mapping[AnyColumnType, frozenset[AnyColumnType]]] = {
    ColumnType.INT: frozenset({ColumnType.STRING, ColumnType.DOUBLE}),
    ColumnType.LONG: frozenset({ColumnType.STRING}),
}
"""The types that hold every value of a type. Floats have no text on which engines agree."""

_SIGNED: Final = frozenset({"int32", "sint32", "sfixed32", "int64", "sint64", "sfixed64", "int", "long"})
"""Types, in the formats' own words, of which a column holds the number itself. A uint64 above 2⁶³ is negative in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """`by` is a field id. `is_castable`: no old value is lost."""

    by: int
    is_castable: bool


def superseded_columns(state: LedgerState) -> dict[int, Superseded]:
    live = {(entry.root, entry.path): entry for entry in state.entries if entry.state is ColumnState.LIVE}
    older: dict[int, Superseded] = {}
    for entry in state.entries:
        newer = live.get((entry.root, entry.path))
        if entry.state is ColumnState.LIVE or newer is None or newer.parent_id != entry.parent_id:
            continue
        is_castable = newer.type in _CASTS.get(entry.type, frozenset()) and _is_signed(entry, state)
        older[entry.field_id] = Superseded(by=newer.field_id, is_castable=is_castable)
    return older


def _is_signed(entry: LedgerEntry, state: LedgerState) -> bool:
    words = set()
    for version in state.versions:
        if version.version < entry.since_version:
            continue
        row = _row_mapping(version.mapping)
        mapping = row.key if entry.root == "key" else row.value
        if entry.field_id in mapping.column_ids:
            words.add(mapping.declared(entry.path).type.removeprefix("required "))
    return bool(words) and words <= _SIGNED


@lru_cache(maxsize=64)
def _row_mapping(text: str) -> RowMapping:
    return row_mapping_from_text(text)
