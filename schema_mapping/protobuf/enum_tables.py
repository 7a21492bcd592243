"""Names by number, and numbers by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from schema_mapping.protobuf.field_kinds import EnumType
from schema_mapping.protobuf.kernel.tables import name_hash

SPILLED = 1 << 63
DENSE_SLACK = 64
DENSE_SPREAD = 4

ENUM = np.dtype([(n, "i4") for n in ("first", "count", "lowest", "dense", "lookup", "by_name", "name_mask")])


class EnumTables:
    def __init__(self) -> None:
        self._known: dict[EnumType, int] = {}
        self._rows: list[tuple[int, ...]] = []
        self._numbers: list[int] = []
        self._slots: list[int] = []
        self._lookup: list[int] = []
        self._by_name: list[int] = []
        self._names = bytearray()
        self._zeros: list[int] = []

    def add(self, enum: EnumType) -> int:
        if enum not in self._known:
            self._known[enum] = len(self._rows)
            self._rows.append(self._row(enum))
        return self._known[enum]

    def zero(self, index: int) -> int:
        """An absent value's name, or the digit 0."""
        return self._zeros[index]

    def arrays(self, last: bytes) -> Mapping[str, npt.NDArray[Any]]:
        return {
            "enums": np.array(self._rows, dtype=ENUM),
            "enum_numbers": np.array(self._numbers, dtype=np.int32),
            "enum_names": np.array(self._slots, dtype=np.uint64),
            "enum_lookup": np.array(self._lookup, dtype=np.int32),
            "name_lookup": np.array(self._by_name, dtype=np.int32),
            "names": np.frombuffer(bytes(self._names) + last, dtype=np.uint8),
        }

    def _row(self, enum: EnumType) -> tuple[int, ...]:
        first = len(self._numbers)
        numbers = [number for number, _ in enum.names]
        for number, name in enum.names:
            self._add_name(number, name)
        lowest, dense, lookup = self._add_lookup(numbers, first)
        by_name, mask = self._add_hashes([name for _, name in enum.names], first)
        if 0 in numbers:
            self._zeros.append(first + numbers.index(0))
        else:
            self._zeros.append(len(self._numbers))
            self._add_name(0, "0")
        return first, len(numbers), lowest, dense, lookup, by_name, mask

    def _add_name(self, number: int, name: str) -> None:
        data = name.encode()
        self._numbers.append(number)
        self._slots.append(SPILLED | len(self._names) << 32 | len(data))
        self._names += data

    def _add_lookup(self, numbers: list[int], first: int) -> tuple[int, int, int]:
        # The dense part starts at zero, or at the lowest number if all numbers are negative.
        start = 0 if numbers and numbers[-1] >= 0 else min(numbers, default=0)
        dense = [number for number in numbers if 0 <= number - start < DENSE_SPREAD * len(numbers) + DENSE_SLACK]
        size = dense[-1] - start + 1 if dense else 0
        part = [-1] * size
        for index, number in enumerate(numbers):
            if 0 <= number - start < size:
                part[number - start] = first + index
        at = len(self._lookup)
        self._lookup.extend(part)
        return start, size, at

    def _add_hashes(self, names: list[str], first: int) -> tuple[int, int]:
        size = 4
        while size < 2 * len(names):
            size *= 2
        part = [0] * size
        for index, name in enumerate(names):
            slot = name_hash(name.encode()) & (size - 1)
            while part[slot]:
                slot = (slot + 1) & (size - 1)
            part[slot] = first + index + 1
        at = len(self._by_name)
        self._by_name.extend(part)
        return at, size - 1
