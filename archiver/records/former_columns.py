"""Former columns of a field: from before the field, or a struct around it, changed its type.

Only widening keeps a column.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from schema_mapping.columns.ledger import LedgerEntry, LedgerState
from schema_mapping.columns.paths import Path, field_step, is_field, is_nanos
from schema_mapping.columns.types import ColumnType
from schema_mapping.names import KEY, MEMBER_STEP, UNRECOGNIZED_STEP
from schema_mapping.row import row_mapping_from_text
from schema_mapping.value_format import ValueMapping

_UNSIGNED: Final = re.compile(r"\b(uint64|fixed64|UInt64Value)\b")
_STRUCTS = (ColumnType.STRUCT, ColumnType.CUT)


class ColumnHistory:
    def __init__(self, ledger: LedgerState) -> None:
        self._rows = tuple(row_mapping_from_text(version.mapping) for version in ledger.versions)
        self._entries = {entry.field_id: entry for entry in ledger.entries}
        self._by_path: dict[tuple[str, Path], list[LedgerEntry]] = defaultdict(list)
        for entry in ledger.entries:
            self._by_path[entry.root, entry.path].append(entry)

    def is_enum(self, field_id: int) -> bool:
        entry = self._entries.get(field_id)
        if entry is None or not is_field(entry.path[-1]):
            return False
        return any(mapping.declared(entry.path).is_enum for mapping in self._mappings(entry.root, field_id))

    def is_unsigned(self, field_id: int) -> bool:
        """Whether the largest numbers are negative in the column."""
        entry = self._entries.get(field_id)
        if entry is None or not is_field(entry.path[-1]):
            return False
        if entry.type is not ColumnType.LONG:
            return entry.type is ColumnType.UINT
        types = (mapping.declared(entry.path).type for mapping in self._mappings(entry.root, field_id))
        return any(_UNSIGNED.search(kind) for kind in types)

    def messages(self, field_id: int) -> frozenset[str]:
        entry = self._entries.get(field_id)
        mappings = self._mappings(entry.root, field_id) if entry else ()
        return frozenset(name for mapping in mappings for name in mapping.messages)

    def former(self, field_id: int) -> frozenset[int]:
        """Columns that may have the field's values."""
        own = self._entries.get(field_id)
        if own is None:
            return frozenset()
        above = {parent.field_id for parent in self._with_parents(own)}
        ids: set[int] = set()
        for path in (own.path, *self._elsewhere(own)):
            for size in range(1, len(path) + 1):
                for entry in self._by_path.get((own.root, path[:size]), ()):
                    if entry.field_id not in above:
                        ids |= self._telling(entry) if size < len(path) else {entry.field_id}
        if is_nanos(own.path[-1]):  # older rows have them in the struct that the time was
            times = self._by_path.get((own.root, (*own.path[:-1], field_step(own.path[-1]))), ())
            ids |= {time.field_id for time in times if time.type in _STRUCTS}
        is_named = isinstance(own.path[0], str)
        tops = (entry for entry in self._tops(own) if isinstance(entry.path[0], str) is not is_named)
        return frozenset(ids | {entry.field_id for entry in tops})  # another format has no paths in common

    def _with_parents(self, entry: LedgerEntry) -> Iterator[LedgerEntry]:
        current: LedgerEntry | None = entry
        while current is not None:
            yield current
            current = self._entries.get(current.parent_id)

    def _telling(self, around: LedgerEntry) -> set[int]:
        if around.type not in _STRUCTS:
            return {around.field_id}
        inside = self._by_path.get((around.root, (*around.path, UNRECOGNIZED_STEP)), ())
        return {entry.field_id for entry in inside if entry.parent_id == around.field_id}

    def _elsewhere(self, own: LedgerEntry) -> Iterator[Path]:
        head, *below = own.path
        if isinstance(head, str):
            return
        members = {member.path[0]: member.field_id for member in self._tops(own) if _is_member(member)}
        if head not in members:
            yield from ((step, *own.path) for step in members)
            return
        yield tuple(below)
        beside = set().union(*(mapping.column_ids for mapping in self._mappings(own.root, members[head])))
        yield from ((step, *below) for step, member in members.items() if member not in beside)

    def _tops(self, own: LedgerEntry) -> list[LedgerEntry]:
        tops = (entry for entry in self._entries.values() if entry.root == own.root and len(entry.path) == 1)
        return [top for top in tops if is_field(top.path[0])]

    def _mappings(self, root: str, field_id: int) -> Iterator[ValueMapping]:
        for row in self._rows:
            mapping = row.key if root == KEY else row.value
            if field_id in mapping.column_ids:
                yield mapping


def _is_member(entry: LedgerEntry) -> bool:
    step = entry.path[0]
    return isinstance(step, int) and step > MEMBER_STEP
