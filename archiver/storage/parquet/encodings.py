"""Chooses encodings by a file's first rows.

Every engine in docs/engines.md reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap, takewhile
from operator import eq
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from archiver.storage.parquet.columns.plan import Encoding
from archiver.storage.parquet.leaves import ParquetLeaf
from schema_mapping import names

OFFSET: Final = f"{names.KAFKA}.{names.OFFSET}"
ALWAYS_DIFFERENCES: Final = (OFFSET, f"{names.KAFKA}.{names.EVENT_TIMESTAMP}")
"""Columns that rise by small steps. Delta encoding beats a dictionary with as many entries as rows."""
NEVER_DICTIONARY: Final = (f"{names.VAL}.{names.RAW}",)
"""Columns whose values rarely repeat, even if the first ones do."""

SAMPLE: Final = 16_384
ENOUGH: Final = 1_024
"""A sample with fewer values says nothing."""
REPEATING: Final = 0.75
"""Share of distinct values in a sample up to which a dictionary is used."""
UNIQUE: Final = 0.99
"""Share of distinct values from which a larger sample would not find more repeats."""
SHORT: Final = 64
"""Average bytes of a string up to which shared prefixes are searched for."""
PAIRS: Final = 256
"""How many pairs of neighbouring strings of a sample are compared."""
SHARED: Final = 0.5
"""Share of bytes in shared prefixes from which prefixes are left out. Below it, compression saves almost as much, and
is faster.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encodings:
    """By column index.

    `long`: long strings, which still compress well; `constant`: numbers with at most one value.
    """

    chosen: Mapping[int, Encoding]
    long: frozenset[int]
    constant: frozenset[int] = frozenset()


def choose_encodings(leaves: Sequence[ParquetLeaf], rows: pa.RecordBatch, *, is_plain: bool = False) -> Encodings:
    """Too few `rows` mean dictionaries nearly everywhere.

    `is_plain`: only dictionaries and plain values, for readers that know only these.
    """
    chosen: dict[int, Encoding] = {}
    long: set[int] = set()
    constant: set[int] = set()
    for leaf, values in zip(leaves, _leaf_values(rows.columns), strict=True):
        choice = _choice(leaf, values)
        chosen[leaf.index] = Encoding.PLAIN if is_plain and choice is not Encoding.DICTIONARY else choice
        if _is_string(leaf.type) and not _is_short(values):
            long.add(leaf.index)
        if not _is_string(leaf.type) and _is_constant(values):
            constant.add(leaf.index)
    return Encodings(chosen=chosen, long=frozenset(long), constant=frozenset(constant))


def _choice(leaf: ParquetLeaf, values: pa.Array) -> Encoding:
    if leaf.name in ALWAYS_DIFFERENCES:
        return Encoding.DIFFERENCES
    if leaf.name in NEVER_DICTIONARY:
        return Encoding.PLAIN
    return Encoding.DICTIONARY if _repeat(values) else _choice_of_distinct(leaf, values)


def _choice_of_distinct(leaf: ParquetLeaf, values: pa.Array) -> Encoding:
    # Spark uses Iceberg's vectorized reader if all columns it reads are top-level. That reader knows fewer encodings
    if "." not in leaf.name:
        return Encoding.PLAIN
    if _is_delta_encodable(leaf.type):
        return Encoding.DIFFERENCES
    if _is_string(leaf.type) and _is_short(values) and _share_starts(values):
        return Encoding.SHARED_STARTS
    return Encoding.PLAIN


def _repeat(values: pa.Array) -> bool:
    if len(values) < ENOUGH:
        return True
    sample = values.slice(0, SAMPLE).drop_null()
    for size in (ENOUGH, 4 * ENOUGH, SAMPLE) if len(sample) >= ENOUGH else ():
        part = sample.slice(0, size)
        share = pc.count_distinct(part).as_py() / len(part)
        if not REPEATING < share < UNIQUE:
            return bool(share <= REPEATING)
    return len(sample) < ENOUGH


def _is_constant(values: pa.Array) -> bool:
    sample = values.slice(0, SAMPLE)
    if len(sample) < ENOUGH or sample.null_count:
        return len(sample) >= ENOUGH and sample.null_count == len(sample)
    return bool(pc.all(pc.equal(sample, sample[0])).as_py())


def _share_starts(strings: pa.Array) -> bool:
    sample = strings.slice(0, SAMPLE).drop_null().slice(0, PAIRS).cast(pa.binary()).to_pylist()
    return sum(starmap(_shared, pairwise(sample))) >= SHARED * sum(map(len, sample[1:]))


def _shared(one: bytes, other: bytes) -> int:
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def _is_delta_encodable(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _is_short(strings: pa.Array) -> bool:
    average = pc.mean(pc.binary_length(strings.slice(0, SAMPLE))).as_py()
    return average is None or average <= SHORT


def _leaf_values(columns: Sequence[pa.Array]) -> Iterator[pa.Array]:
    for column in columns:
        kind = column.type
        if pa.types.is_struct(kind):
            yield from _leaf_values([column.field(index) for index in range(kind.num_fields)])
        elif pa.types.is_map(kind):
            first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
            yield from _leaf_values([child.slice(first, last - first) for child in (column.keys, column.items)])
        elif pa.types.is_nested(kind):
            yield from _leaf_values([column.flatten()])
        else:
            yield column.storage if isinstance(column, pa.ExtensionArray) else column
