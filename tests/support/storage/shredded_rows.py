"""Rows as Parquet stores them, in plain Python, to judge files.

Times and floats are compared as stored: 0.0 is not -0.0, and NaN equals itself.
"""

from __future__ import annotations

import decimal
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

LONGEST_BOUND: Final = 4096
"""Longer extremes are cut. Arrow leaves them out."""
_WIDE: Final = decimal.Context(prec=80)
_WIDTHS: Final = {32: pa.int32(), 64: pa.int64()}


def python_values(array: pa.Array) -> list[Any]:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return python_values(array.storage)
    if pa.types.is_struct(kind):
        return _unless_null(array, list(zip(*map(python_values, _members(array)), strict=True)))
    if is_listed(kind):
        first, ends = _ends(array)  # a map's `keys` and `items` forget the start of sliced entries; `values` don't
        return _unless_null(array, _cut(python_values(array.values.slice(first, ends[-1])), ends))
    if pa.types.is_floating(kind) or pa.types.is_temporal(kind):
        return list(array.view(_WIDTHS[kind.bit_width]).to_pylist())
    return list(array.to_pylist())


def is_listed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _members(array: pa.Array) -> list[pa.Array]:
    return [array.field(at) for at in range(array.type.num_fields)]


def _ends(array: pa.Array) -> tuple[int, list[int]]:
    wide = pa.types.is_large_list(array.type)
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:
        return 0, [0]
    offsets = np.frombuffer(buffer, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    return int(offsets[0]), (offsets - offsets[0]).tolist()


def _cut(values: list[Any], ends: list[int]) -> list[Any]:
    return [values[start:end] for start, end in pairwise(ends)]


def _unless_null(array: pa.Array, values: list[Any]) -> list[Any]:
    return [value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)]


@dataclass(slots=True)
class Column:
    """A value is None below the highest definition level."""

    type: pa.DataType
    max_repetition: int
    max_definition: int
    repetition: list[int] = field(default_factory=list)
    definition: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def part(self, start: int, end: int) -> Column:
        levels = self.repetition[start:end], self.definition[start:end]
        return Column(self.type, self.max_repetition, self.max_definition, *levels, self.values[start:end])

    @property
    def nulls(self) -> int:
        """Empty and missing lists count."""
        return sum(level < self.max_definition for level in self.definition)

    @property
    def repetition_histogram(self) -> list[int]:
        return _histogram(self.repetition, self.max_repetition)

    @property
    def definition_histogram(self) -> list[int]:
        return _histogram(self.definition, self.max_definition)

    @property
    def text_bytes(self) -> int | None:
        if not is_text(self.type):
            return None
        return sum(len(octets(value)) for value in self.values if value is not None)

    @property
    def bounds(self) -> tuple[bytes, bytes] | None:
        """As stored; None if nothing is comparable."""
        kept = [value for value in self.values if value is not None]
        if pa.types.is_floating(self.type):
            return _float_bounds(self.type, kept)
        if not kept:
            return None
        key, stored = _order(self.type)
        return stored(min(kept, key=key)), stored(max(kept, key=key))

    @property
    def has_nan(self) -> bool:
        return pa.types.is_floating(self.type) and any(
            math.isnan(item) for item in _floats(self.type, [value for value in self.values if value is not None])
        )

    @property
    def is_cut(self) -> bool:
        return self.bounds is not None and max(map(len, self.bounds)) > LONGEST_BOUND

    def comparable(self, bound: bytes) -> Any:
        kind = self.type
        if pa.types.is_floating(kind):
            return struct.unpack("<f" if kind.bit_width == 32 else "<d", bound)[0]
        if pa.types.is_decimal(kind):
            return int.from_bytes(bound, "big", signed=True)
        is_bytes = is_text(kind) or isinstance(kind, pa.BaseExtensionType) or pa.types.is_fixed_size_binary(kind)
        return bound if is_bytes else int.from_bytes(bound, "little", signed=True)


def _histogram(levels: Iterable[int], highest: int) -> list[int]:
    result = [0] * (highest + 1)
    for level in levels:
        result[level] += 1
    return result if highest else []


def is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def octets(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _order(kind: pa.DataType) -> tuple[Callable[[Any], Any], Callable[[Any], bytes]]:
    if pa.types.is_decimal(kind):
        width = _decimal_bytes(kind.precision)

        def unscaled(value: Any) -> int:
            return int(value.scaleb(kind.scale, _WIDE))

        return unscaled, lambda value: unscaled(value).to_bytes(width, "big", signed=True)
    if is_text(kind):
        return octets, octets
    if pa.types.is_boolean(kind):
        return int, lambda value: bytes([value])
    if isinstance(kind, pa.BaseExtensionType) or pa.types.is_fixed_size_binary(kind):
        return bytes, bytes
    return int, lambda value: int(value).to_bytes(kind.bit_width // 8, "little", signed=True)


def _decimal_bytes(precision: int) -> int:
    most: int = 10**precision - 1
    return (most.bit_length() + 8) // 8


def _float_bounds(kind: pa.DataType, bits: Sequence[int]) -> tuple[bytes, bytes] | None:
    """NaN is no bound. Zeros are -0.0 below and 0.0 above."""
    letter = "<f" if kind.bit_width == 32 else "<d"
    numbers = [value for value in _floats(kind, bits) if not math.isnan(value)]
    if not numbers:
        return None
    return struct.pack(letter, min(numbers) or -0.0), struct.pack(letter, max(numbers) or 0.0)


def _floats(kind: pa.DataType, bits: Sequence[int]) -> list[float]:
    width, letter = ("<i", "<f") if kind.bit_width == 32 else ("<q", "<d")
    return [struct.unpack(letter, struct.pack(width, bit))[0] for bit in bits]


def shredded(table: pa.Table) -> list[Column]:
    nodes = [_Node.of(value, 0, 0) for value in table.schema]
    for node, column in zip(nodes, table.columns, strict=True):
        for chunk in column.chunks:
            for value in python_values(chunk):
                node.add(value, 0, 0)
    return [leaf for node in nodes for leaf in node.leaves]


@dataclass(frozen=True, slots=True)
class _Node:
    field: pa.Field
    deep: int
    children: list[_Node]
    leaves: list[Column]

    @classmethod
    def of(cls, column: pa.Field, deep: int, definition: int) -> _Node:
        kind = column.type
        definition += column.nullable
        repeated = is_listed(kind)
        children = [cls.of(member, deep + repeated, definition + repeated) for member in _members_of(kind)]
        leaves = [leaf for child in children for leaf in child.leaves]
        return cls(column, deep, children, leaves or [Column(kind, deep, definition)])

    def add(self, value: Any, repetition: int, definition: int) -> None:
        assert value is not None or self.field.nullable, self.field
        definition += self.field.nullable and value is not None
        if value is None or not self.children:
            self._end(value, repetition, definition)
        elif not is_listed(self.field.type):
            for child, member in zip(self.children, value, strict=True):
                child.add(member, repetition, definition)
        elif not value:
            self._end(None, repetition, definition)
        else:
            for number, entry in enumerate(value):
                members = entry if len(self.children) > 1 else (entry,)
                for child, member in zip(self.children, members, strict=True):
                    child.add(member, self.deep + 1 if number else repetition, definition + 1)

    def _end(self, value: Any, repetition: int, definition: int) -> None:
        for leaf in self.leaves:
            leaf.repetition.append(repetition)
            leaf.definition.append(definition)
            leaf.values.append(value)


def _members_of(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.value_field] if is_listed(kind) else []
