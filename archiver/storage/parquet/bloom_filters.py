"""Sizes bloom filters by a file's first row group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from archiver.storage.parquet.leaves import ParquetLeaf

FEWEST: Final = 1_024
"""The fewest values that a filter is made for, as a column may begin with nulls. They take 2 KiB at 1 %."""

_SMALLEST: Final = 32
"""Bytes of a filter's block."""

SMALLEST_RATE: Final = 0.0001
"""With 128 Ki values in each row group, smaller rates would take more than 512 KiB a row group."""


@dataclass(frozen=True, slots=True)
class FilterSize:
    values: int
    rate: float

    @property
    def size(self) -> int:
        bits = -8 * self.values / math.log(1 - self.rate ** (1 / 8))
        return int(max(_SMALLEST, 2 ** math.ceil(math.log2(bits / 8))))


def filter_sizes(leaves: Sequence[ParquetLeaf], wanted: Mapping[int, float], first: pa.Table) -> dict[int, FilterSize]:
    return {
        leaf.index: FilterSize(max(FEWEST, _distinct(leaf.values(first))), max(SMALLEST_RATE, rate))
        for leaf in leaves
        if (rate := wanted.get(leaf.field_id or 0)) and can_have_filter(leaf)
    }


def _distinct(values: pa.ChunkedArray) -> int:
    if isinstance(values.type, pa.BaseExtensionType):  # Arrow counts none of these, such as UUIDs
        values = values.cast(values.type.storage_type)
    return int(pc.count_distinct(values).as_py())


def can_have_filter(leaf: ParquetLeaf) -> bool:
    """Whether a filter is useful and safe.

    0.0 equals -0.0 but hashes differently, and widening 32-bit numbers changes hashes (Trino's issue 30544): rows would
    be hidden. DuckDB 1.5 hashes bytes as displayed text. No engine searches lists; Parquet has no filters for booleans.
    """
    kind = leaf.type
    refused = pa.types.is_boolean(kind) or pa.types.is_floating(kind) or pa.types.is_int32(kind)
    return not (leaf.is_repeated or refused or (len(leaf.parts) == 1 and _is_binary(kind)))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))
