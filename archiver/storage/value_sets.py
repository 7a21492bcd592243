"""Column values of a file, and checksums of its filters.

Sets only rule out: a column without a set may have any value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias, TypeGuard

MOST_VALUES: Final = 1_000
"""Columns with more distinct values have no set."""
FEWEST: Final = 32
ROWS_OF_VALUE: Final = 16
"""A set has at most one value for this many rows, but `FEWEST` in any case."""

SHARE: Final = 64
SMALLEST: Final = 256
MOST_HELD: Final = 2 << 20

Values: TypeAlias = AbstractSet[int] | AbstractSet[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLimits:
    """Sets take at most one of `share` bytes of a file. If that is less than `smallest`, it has none.

    Smaller files are read by one request. `most_held` bounds the values' bytes (see `bytes_of`) during writing: memory
    has some 10 times as many.
    """

    share: int = SHARE
    smallest: int = SMALLEST
    most_held: int = MOST_HELD

    def bytes_of(self, file_bytes: int) -> int:
        limit = file_bytes // self.share
        return limit if limit >= self.smallest else 0


@dataclass(frozen=True, slots=True)
class ValueSets:
    """Distinct non-null values by field id: numbers, or bytes (UTF-8 of texts)."""

    by_field: Mapping[int, Values] = field(default_factory=lambda: MappingProxyType({}))

    def values(self, field_id: int) -> Values | None:
        """None if they aren't known."""
        return self.by_field.get(field_id)

    def may_have(self, field_id: int, value: int | str | bytes) -> bool:
        values = self.by_field.get(field_id)
        return values is None or (value.encode() if isinstance(value, str) else value) in values


def is_listed_value(value: object) -> TypeGuard[int | str | bytes]:
    return isinstance(value, int | str | bytes) and not isinstance(value, bool)


def bytes_of(values: Iterable[int | bytes]) -> int:
    """About the bytes of a set in a file, unpacked."""
    return sum(len(value) + 1 if isinstance(value, bytes) else 4 for value in values)


class SetsOfBlocks:
    """Has at most `most_bytes` (see `bytes_of`): the largest sets are dropped."""

    def __init__(self, field_ids: Iterable[int], most_bytes: int = MOST_HELD) -> None:
        self._sets: dict[int, set[int | bytes]] = {identifier: set() for identifier in field_ids}
        self._sizes = dict.fromkeys(self._sets, 0)
        self._bytes = 0
        self._most_bytes = most_bytes
        self._rows = 0

    def most_of(self, field_id: int | None, rows: int) -> int:
        """-1 for none.

        Files with few rows list few: every value would cost more than it saves.
        """
        if field_id not in self._sets:
            return -1
        return min(MOST_VALUES, max(FEWEST, (self._rows + rows) // ROWS_OF_VALUE))

    def add(self, field_id: int, distinct: tuple[int, ...] | tuple[bytes, ...] | None) -> None:
        """`distinct` None: not known."""
        values = self._sets.get(field_id)
        if values is None:
            return
        count = len(values)
        values.update(distinct or ())
        if distinct is None or len(values) > MOST_VALUES:
            self._drop(field_id)
        elif len(values) > count:
            size = bytes_of(values)
            self._bytes += size - self._sizes[field_id]
            self._sizes[field_id] = size
            while self._bytes > self._most_bytes:
                self._drop(max(self._sizes, key=self._sizes.__getitem__))

    def end_block(self, rows: int) -> None:
        """Call it once the block's values are added."""
        self._rows += rows

    def _drop(self, field_id: int) -> None:
        del self._sets[field_id]
        self._bytes -= self._sizes.pop(field_id)

    @property
    def sets(self) -> Mapping[int, frozenset[int | bytes]]:
        """For columns whose values are known in all blocks."""
        return {identifier: frozenset(values) for identifier, values in self._sets.items()}
