"""Hashes of the values in a file's columns, small enough for the registry. They only rule out files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Self

MOST_BYTES: Final = 3_800
"""Of one file: 8 for each term, and 4 for each column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTerms:
    """`terms` has a hash of every value of the `columns`, which are field ids."""

    columns: tuple[int, ...] = ()
    terms: tuple[int, ...] = ()

    @classmethod
    def of_sets(cls, sets: Mapping[int, AbstractSet[int | bytes]]) -> Self:
        """Columns without a value come last: null counts say it, too."""
        columns: list[int] = []
        terms: list[int] = []
        left = MOST_BYTES
        for identifier in sorted(
            sets, key=lambda identifier: (not sets[identifier], len(sets[identifier]), identifier)
        ):
            size = 4 + 8 * len(sets[identifier])
            if size > left:
                continue
            left -= size
            columns.append(identifier)
            terms += (term_of(identifier, value) for value in sets[identifier])
        return cls(columns=tuple(sorted(columns)), terms=tuple(sorted(set(terms))))

    @property
    def size_bytes(self) -> int:
        return 4 * len(self.columns) + 8 * len(self.terms)


def term_of(field_id: int, value: int | str | bytes) -> int:
    """A signed number of 64 bits. A text has the term of its UTF-8."""
    octets = value.encode() if isinstance(value, str) else value
    kind = b"n" if isinstance(octets, int) else b"t"
    plain = octets.to_bytes(8, "little", signed=True) if isinstance(octets, int) else octets
    digest = blake2b(plain, digest_size=8, salt=kind, person=field_id.to_bytes(4, "little", signed=True))
    return int.from_bytes(digest.digest(), "little", signed=True)


@dataclass(frozen=True, slots=True)
class Lookup:
    field_id: int
    value: int | str | bytes

    @property
    def term(self) -> int:
        return term_of(self.field_id, self.value)


def columns_and_terms(lookups: Iterable[Lookup]) -> tuple[list[int], list[int]]:
    pairs = [(lookup.field_id, lookup.term) for lookup in lookups]
    return [identifier for identifier, _ in pairs], [term for _, term in pairs]
