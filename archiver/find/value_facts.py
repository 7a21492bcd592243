"""Rules out data files by values in the registry, for all files at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from archiver.records.possible import Leaf
from archiver.records.table_columns import TableColumn
from archiver.records.where import Mask
from archiver.records.where_syntax import BytesAre, ColumnIs, Exists, Header, NullTest
from archiver.storage.value_sets import is_listed_value
from catalog.value_terms import Lookup
from schema_mapping.columns.fixed import HEADER_KEY_ID, HEADER_VALUE_ID, RAW_HEADER_KEY_ID

Absent: TypeAlias = Callable[[Sequence[str], Sequence[Lookup]], Mapping[str, Sequence[bool]]]
"""For paths of files, says of each lookup whether no row has the value. Leaves out files that it doesn't know."""

MOST_ANSWERS: Final = 5_000_000
"""Values times files of a search: each answer takes a byte, and some more on its way."""


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """`absent` says by lookup and file that no row has the value.

    It may cover the first files only: the rest may have any value.
    """

    lookups: Mapping[Lookup, int]
    absent: Mask
    files: int

    @classmethod
    def of(
        cls,
        leaves: Sequence[tuple[tuple[Lookup, ...], ...]],
        paths: Sequence[str],
        ask: Absent,
        *,
        most: int = MOST_ANSWERS,
    ) -> ValueFacts:
        distinct = dict.fromkeys(lookup for needs in leaves for need in needs for lookup in need)
        lookups = {lookup: number for number, lookup in enumerate(distinct)}
        asked = paths[: most // len(lookups)] if lookups else []
        answers = ask(asked, list(lookups)) if asked else {}
        absent = np.zeros((len(lookups), len(asked)), np.bool_)
        for number, path in enumerate(asked):
            if path in answers:
                absent[:, number] = answers[path]
        return cls(lookups, absent, len(paths))

    def possible(self, needs: Sequence[Sequence[Lookup]]) -> Mask:
        possible = np.ones(self.files, np.bool_)
        for need in needs:
            possible[: self.absent.shape[1]] &= ~self.absent[[self.lookups[lookup] for lookup in need]].all(axis=0)
        return possible


def needs_of(leaf: Leaf, key_id: int | None, columns: Mapping[ColumnIs, TableColumn]) -> tuple[tuple[Lookup, ...], ...]:
    """Return values that a matching row needs, one of each; empty if any value may do."""
    match leaf:
        case BytesAre("key", "=", value) if key_id is not None:
            return ((Lookup(key_id, value),),)
        case BytesAre(Header(name), "=", value):
            return (_named(name), (Lookup(HEADER_VALUE_ID, value),))
        case BytesAre(Header(name)) | NullTest(Header(name)) | Exists(Header(name)):
            return (_named(name),)
        case ColumnIs(comparison="="):
            column = columns[leaf]
            return ((Lookup(column.field_id, column.value),),) if is_listed_value(column.value) else ()
        case _:
            return ()


def _named(name: bytes) -> tuple[Lookup, ...]:
    return Lookup(HEADER_KEY_ID, name), Lookup(RAW_HEADER_KEY_ID, name)
